// Package publish sends records to Kafka and brings the results back.
//
// # What it promises
//
//   - Every ticket taken gets exactly one result.
//   - Records of one key reach their partition in the order of the calls. A
//     record that fails holds back the later ones of its partition until it is
//     delivered, dead-lettered, or its source is stopped; it is never passed.
//   - acks=all and the idempotent producer are not options.
//   - What waits and what is under way is bounded, by bytes and by count.
//
// # How order survives a failure
//
// A lane is one partition of one topic. In the open state Publish hands records
// straight to franz-go, which keeps several batches of a partition under way and,
// when one fails, fails everything buffered behind it. Two gaps remain and are
// closed here:
//
//   - A record could be handed over between the failure inside franz-go and the
//     call that tells us. Each record is its own context (see item): franz-go
//     asks the first record of a partition's first batch whether it is cancelled
//     just before the batch is written for the first time. At that moment every
//     earlier record of the partition has been decided, so the answer is exact.
//   - What failed must go out again before what came later. The lane is then
//     held: new records wait in its queue, a worker waits until nothing is under
//     way, narrows a refusal down to the one record that causes it, applies the
//     policy to it, sends the rest in order and opens the lane again.
//
// # What is put aside
//
// With a [Desk], records can be put aside instead of being published: those that are
// poison, by policy, and all later ones of their key (Desk.Held, whoever holds it).
// The desk is asked after a record was let into its lane, so that it knows what
// the lane's worker put aside before it opened the lane; and for records that waited,
// when their time comes. Nothing of the lane is under way while a record is put
// aside, so the desk gets the records of a key in order.
//
// # Where records wait
//
//	Publish ── topic unknown or being re-cut? ── topic queue
//	   └────── lane held? ────────────────────── lane queue
//	   └────── else ──────────────────────────── franz-go
//
// The topic table (topics.go) learns partitions and limits before the first
// record of a topic goes out, and looks again from time to time. A change of the
// partition count takes effect when nothing of the topic is under way.
//
// Records larger than a batch of the main client are sent alone, by a second
// client whose batches may be as large as a request.
//
// Memory: the bytes behind a record stay in use until its result is delivered.
// The package never releases a ticket's Memory; whoever takes the result does.
package publish
