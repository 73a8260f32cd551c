// Package mongo writes what an application staged into its MongoDB database, in the
// application's own transaction. It needs a replica set, since there are no
// transactions and no change streams without.
//
//	out, err := mongo.Open(ctx, client.Database("shop"), mongo.Options{})
//	…
//	_, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
//		b := out.Buffer() // inside: another attempt begins with an empty one
//		// business writes with ctx, and what they have to say on b
//		_, err := out.Flush(ctx, b)
//		return nil, err
//	})
//
// An [Outbox] is opened once for a process: it holds the process's clock, which goes on
// from the [Checkpoint] where an earlier process stopped. walrelay init makes the
// collection of the outbox, in the forze schema, with its indexes; [Init] makes it too,
// and the marks' collection hlc_checkpoint, which otherwise comes with the first flush.
//
// # One flush
//
// A flush asks which events are there already, inserts the others in the order of
// their stamps, and raises the checkpoint to the greatest: three round trips in the
// caller's transaction, so that all of it is there or nothing. An event whose route and
// event id are there already is left as it is and reported.
//
// Outside of a transaction it is refused: the event would be there without the business
// change, or the change without the event. [Options.Autocommit] allows it.
//
// # What is stored
//
// The payload becomes a document of the same members, in their order. An integer of 32
// or 64 bits is stored as such, any other number as a double. What would not come out
// as the number that went in is refused when it is staged (more digits than a double
// holds, 1e400); so are more than 99 levels of nesting and more than 16 MiB.
// [Options.PayloadAsText] keeps the bytes themselves. Times are kept to the millisecond.
//
// # Hazards
//
//   - A transaction that writes a mark which another one wrote since it began is sent
//     back with a conflict (code 112, label TransientTransactionError), also when the
//     other one has committed: use WithTransaction, which begins again. Give each process
//     a NodeKey of its own, so that they cannot meet; within a process the marks are
//     spread over Checkpoint.Stripes. (16 sessions, one event each, two cores under load:
//     150 transactions a second on one document, with three attempts each; 720 on 64; 980
//     without a checkpoint; the bench is in bench_test.go.)
//   - A transaction does not end with its connection. What a process that dies between
//     the flush and the commit has written stays locked until the server gives the
//     transaction up, after 60 to 90 s by default (transactionLifetimeLimitSeconds): the
//     stripe of its mark, which nobody needs, and whatever the business change locked.
//   - The buffer is made inside of the callback, or a second attempt writes what the
//     first one staged.
//   - Without the unique index of route and event id (see [Init]) two transactions at
//     the same time can write an event twice.
//   - A client whose database depends on the tenant is refused: see [ErrOtherClient].
//   - A mark that is far ahead of the wall clock is resumed from nevertheless (see
//     package hlc): watch the clock's Lead after Open.
package mongo
