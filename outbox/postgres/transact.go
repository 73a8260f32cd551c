package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A call gives up on a server that says nothing; the server gives up earlier by itself.
const (
	silenceTimeout   = 45 * time.Second
	statementTimeout = "30s"
	lockTimeout      = "5s"
)

// begin opens every transaction. The settings hold for the transaction alone. They
// pin how values are printed (to the log's decoder the slot pins the same), and keep
// compilation of plans and parallel workers out of statements of a few milliseconds.
const begin = `begin isolation level read committed read write`

const pins = `select pg_catalog.set_config('TimeZone', 'UTC', true), pg_catalog.set_config('DateStyle', 'ISO,MDY', true),
 pg_catalog.set_config('IntervalStyle', 'postgres', true), pg_catalog.set_config('bytea_output', 'hex', true),
 pg_catalog.set_config('extra_float_digits', '3', true), pg_catalog.set_config('jit', 'off', true),
 pg_catalog.set_config('max_parallel_workers_per_gather', '0', true),
 pg_catalog.set_config('statement_timeout', '` + statementTimeout + `', true),
 pg_catalog.set_config('lock_timeout', '` + lockTimeout + `', true),
 pg_catalog.set_config('idle_in_transaction_session_timeout', '120s', true)`

// statement is one statement of a transaction.
type statement struct {
	sql string
	// args are the parameters in text form, nil for NULL: text, array. Their types come
	// from casts in the statement: $1::text[].
	args [][]byte
	// formats says which args are in binary form; nil: none.
	formats []int16
	// row is called for each row of the answer, if it is not nil. The values are in
	// text form, nil for NULL, and belong to the connection: copy what is to be kept.
	// An error of row ends the call, but the statements were sent already: it undoes nothing
	// when the transaction was sent whole.
	row func(values [][]byte) error
	// count receives the number of rows that the statement touched, if it is not nil.
	count *int64
}

// transact runs the statements as one transaction, sent in one round trip. doing
// completes the sentence "… failed"; the error is classified.
func (d *Database) transact(ctx context.Context, doing string, statements ...statement) error {
	return d.converse(ctx, doing, func(ctx context.Context, t *tx) error { return t.commit(ctx, statements...) })
}

// converse runs a transaction whose later statements depend on earlier answers. f
// ends it with t.commit; otherwise it is rolled back.
func (d *Database) converse(ctx context.Context, doing string, f func(ctx context.Context, t *tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	t, err := d.begin(ctx, d.short)
	if err == nil {
		err = f(ctx, t)
		t.end(ctx)
	}
	return d.classify(err, doing)
}

func (d *Database) classify(err error, doing string) error {
	if err == nil {
		return nil
	}
	return d.o.Classify(err, doing)
}

// tx is a transaction on a connection of its own. It begins with the first
// statement that is run.
type tx struct {
	set   *conns
	conn  *pgx.Conn
	begun bool
}

func (d *Database) begin(ctx context.Context, set *conns) (*tx, error) {
	conn, err := set.take(ctx)
	if err != nil {
		return nil, err
	}
	return &tx{set: set, conn: conn}, nil
}

// run sends statements in one round trip and leaves the transaction open.
func (t *tx) run(ctx context.Context, statements ...statement) error {
	return t.send(ctx, statements, false)
}

// commit sends statements and the commit behind them, in one round trip.
func (t *tx) commit(ctx context.Context, statements ...statement) error {
	return t.send(ctx, statements, true)
}

// end gives the connection back, after a rollback if the transaction is still open.
func (t *tx) end(ctx context.Context) {
	if pg := t.conn.PgConn(); !pg.IsClosed() && pg.TxStatus() != 'I' && ctx.Err() == nil {
		_, _ = pg.Exec(ctx, "rollback").ReadAll() // a connection on which this fails is not used again
	}
	t.set.give(t.conn)
}

func (t *tx) send(ctx context.Context, statements []statement, commit bool) error {
	batch := &pgconn.Batch{}
	all := make([]statement, 0, len(statements)+3)
	if !t.begun {
		all = append(all, statement{sql: begin}, statement{sql: pins})
		t.begun = true
	}
	all = append(all, statements...)
	if commit {
		all = append(all, statement{sql: "commit"})
	}
	for i := range all {
		batch.ExecParams(all[i].sql, all[i].args, nil, all[i].formats, nil)
	}
	results := t.conn.PgConn().ExecBatch(ctx, batch)
	var failed error
	at := 0
	for ; results.NextResult(); at++ {
		r := results.ResultReader()
		for r.NextRow() {
			if failed == nil && at < len(all) && all[at].row != nil {
				failed = all[at].row(r.Values())
			}
		}
		tag, err := r.Close()
		if err == nil && at < len(all) && all[at].count != nil {
			*all[at].count = tag.RowsAffected()
		}
		if err == nil && at == len(all)-1 && commit && tag.String() != "COMMIT" {
			failed = fmt.Errorf("the transaction ended with %s", tag) // ROLLBACK: an earlier statement had failed
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	return failed
}
