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
// from the [Checkpoint] where an earlier process stopped. The collections are those
// that walrelay init makes: the outbox of the forze schema, and hlc_checkpoint beside
// it; [Init] makes them too.
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
//   - A transaction that raises a mark which another one raised since it began is sent
//     back with a conflict (code 112, label TransientTransactionError), also when the
//     other one has committed. So transactions of one process that run beside each other
//     repeat each other's work: give each process a NodeKey of its own, and set Stripes
//     where many transactions run at a time. Use WithTransaction, which begins again.
//     (16 sessions, one event each, two cores under load: 150 transactions a second on
//     one document, with three attempts each; 720 on 64 stripes; 980 without a
//     checkpoint; the bench is in bench_test.go.)
//   - The buffer is made inside of the callback, or a second attempt writes what the
//     first one staged.
//   - Without the unique index of route and event id (see [Init]) two transactions at
//     the same time can write an event twice.
//   - A client whose database depends on the tenant is refused: see [ErrOtherClient].
//   - A mark that is far ahead of the wall clock is resumed from nevertheless (see
//     package hlc): watch the clock's Lead after Open.
package mongo
