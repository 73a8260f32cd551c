// Package inbox is the reader's half of the library: it lets a consumer handle
// each event once, although Kafka and the relay may deliver it several times.
//
// One record is handled like this, all of it in one database transaction:
//
//	insert the mark (inbox_route, message_id)
//	   │ it was there already ──► duplicate: stop. No handler, no clock.
//	   ▼ it is new
//	merge the event's stamp into the clock
//	   ▼
//	handler, on the same transaction
//	   ▼
//	commit ──► and only then the offset goes to Kafka
//
// What holds:
//
//   - The effects of a handler are committed together with the mark, or neither
//     is. A handler that fails leaves no mark, so that the record is handled when
//     it comes again; after a crash between the database's commit and Kafka's, it
//     comes again and is skipped.
//   - Of several consumers that have the same record at the same time, one runs
//     the handler; the others wait for its outcome.
//   - What the handler writes with the clock's next stamp sorts after the event
//     that it reacts to: the event's stamp is merged before the handler runs. The
//     exception is a stamp that was refused, see below.
//   - A duplicate never moves the clock.
//
// What does not hold, and what to mind:
//
//   - Only what the handler writes through the transaction that it is given is
//     done once. A mail that it sends is sent again when the transaction is run
//     again or rolled back.
//   - The mark is the id of the event, and the key of a record is never an id:
//     many events have one key. A record without an event id is known by its place
//     topic:partition:offset, which recognizes a redelivery, not a record that was
//     published twice. A topic that is deleted and made again starts its offsets
//     anew, and such records would then pass for duplicates: forget the marks of
//     the route with the topic, or have ids.
//   - A route is one reader: every service, or part of one, that is to see an event
//     once has a route of its own in its own database. So has each topic, where the
//     writers make event ids themselves: an outbox keeps them apart within a route of
//     its own, not across routes, and two events of one id pass for the same.
//   - A mark protects for as long as it is kept. Keep marks longer than Kafka keeps
//     records, or an old offset handles old events again.
//   - Headers are not signed. A stamp that is malformed, or further ahead than the
//     clock allows, is not merged; the event is handled all the same and the refusal
//     counted (Stats, Options.OnRefused). What such a handler stages may then carry a
//     smaller stamp than its cause.
//   - What to do with a record whose handler fails every time is for the application
//     to say: stop there (nothing is lost, the partition waits), or put the record
//     aside in the same database and count it as handled. The library never skips.
//
// This package is the part that no database needs; inbox/postgres adds the table,
// inbox/mongo the collection.
// The order of steps and the names of headers are those of the forze outbox.
package inbox
