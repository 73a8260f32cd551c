// Package postgres writes what an application staged into its Postgres database,
// in the application's own transaction, through pgx or database/sql.
//
//	out, err := postgres.Open(ctx, postgres.Pgx(pool), postgres.Options{})
//	…
//	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		b := out.Buffer()
//		// business writes on tx, and what they have to say on b
//		_, err := out.Flush(ctx, postgres.Pgx(tx), b)
//		return err
//	})
//
// An [Outbox] is opened once for a process: it holds the process's clock, which
// goes on from the [Checkpoint] where an earlier process stopped. The tables are
// those that walrelay init makes: the outbox of the forze schema, and hlc_checkpoint
// beside it ([Checkpoint.DDL] has the statement).
//
// # One flush
//
// A flush is one statement: all rows, and the checkpoint raised to the greatest
// stamp. So either is there with the other, and it costs one round trip. A row
// whose route and event id are there already is left as it is and reported.
//
// Outside of a transaction it is refused: the event would be there without the
// business change, or the change without the event. [Options.Autocommit] allows it.
//
// # Hazards
//
//   - The flush locks the checkpoint's row of its node until the transaction ends,
//     so transactions of one node commit one after the other from there on. Flush
//     last, commit at once, and give each process a NodeKey of its own; where many
//     transactions of one process flush at the same time, set Stripes. (16 sessions,
//     durable commits, two cores: 2 100 transactions a second on one row, 4 000 on 64
//     stripes, 5 500 without a checkpoint; the bench is in bench_test.go.)
//   - For the same reason a transaction that goes on to lock other rows after its
//     flush can end in a deadlock with one that locked them before.
//   - Under REPEATABLE READ and SERIALIZABLE two transactions of one node (and
//     stripe) conflict: the later one fails with SQLSTATE 40001, to be run again.
//   - A mark that is far ahead of the wall clock is resumed from nevertheless (see
//     package hlc): watch the clock's Lead after Open.
package postgres
