package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestFlushOutsideOfATransactionIsRefusedAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHouse(t, pgserver.Shared(t, pgserver.V18), byPgx)
	conn, err := h.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	sqlConn, err := h.sql.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sqlConn.Close() }()
	over, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := over.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	sqlOver, err := h.sql.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlOver.Rollback(); err != nil {
		t.Fatal(err)
	}
	poolOver, err := h.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := poolOver.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]DB{
		"pool": Pgx(h.pool), "connection of the pool": Pgx(conn), "connection": Pgx(conn.Conn()), "committed transaction": Pgx(over),
		"transaction of the pool that was rolled back": Pgx(poolOver), "sql.DB": SQL(h.sql), "sql.Conn": SQL(sqlConn), "sql.Tx that was rolled back": SQL(sqlOver),
	} {
		x := h.open(Options{})
		b := h.stage(x.Buffer(), full())
		_, err := x.Flush(ctx, db, b)
		refused := errors.Is(err, ErrNoTransaction) && strings.Contains(err.Error(), "begin one") || errors.Is(err, sql.ErrTxDone)
		if !refused || b.Len() != 1 {
			t.Errorf("%s: %v, %d left in the buffer", name, err, b.Len())
		}
		if err := x.Emit(ctx, db, stage.Message{Route: "r"}); !errors.Is(err, ErrNoTransaction) && !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("%s: a message: %v", name, err)
		}
		if err := (Checkpoint{}).Advance(ctx, db, 7); !errors.Is(err, ErrNoTransaction) && !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("%s: the checkpoint: %v", name, err)
		}
	}
	h.wants("0", `select count(*)::text from outbox`)
	h.wantsMark(0)
}

// wrapped is an application's own type around a transaction.
type wrapped struct{ pgx.Tx }

type wrappedSQL struct{ *sql.Tx }

// queryOnly has nothing of a transaction to look at but its end.
type queryOnly struct {
	PgxQuerier
	commit func(context.Context) error
}

func (q queryOnly) Commit(ctx context.Context) error { return q.commit(ctx) }

func TestEveryKindOfTransactionIsRecognised(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHouse(t, pgserver.Shared(t, pgserver.V18), byPgx)
	x := h.open(Options{})
	tx, err := h.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn := h.pg.Conn(t, h.name)
	if _, err := conn.Exec(ctx, "begin"); err != nil {
		t.Fatal(err)
	}
	sqlTx, err := h.sql.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	for name, db := range map[string]DB{
		"savepoint": Pgx(savepoint), "connection with BEGIN by hand": Pgx(conn), "wrapped": Pgx(wrapped{tx}), "wrapped sql.Tx": SQL(wrappedSQL{sqlTx}),
		"without a connection to look at": Pgx(queryOnly{tx, tx.Commit}),
	} {
		// Each of its own node: the transactions are open at the same time.
		node := h.open(Options{Checkpoint: Checkpoint{NodeKey: name}, Clock: x.Clock()})
		if res, err := node.Flush(ctx, db, h.stage(node.Buffer(), some(1)...)); err != nil || res.Written != 1 {
			t.Errorf("%s: %+v %v", name, res, err)
		}
	}
	_, err = conn.Exec(ctx, "commit")
	if err = errors.Join(err, savepoint.Commit(ctx), tx.Commit(ctx), sqlTx.Commit()); err != nil {
		t.Fatal(err)
	}
	h.wants("5", `select count(*)::text from outbox`)
	h.wants("5", `select count(*)::text from hlc_checkpoint`)
}

func TestAutocommitWritesRowsAndMarkTogether(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		x := h.open(Options{Autocommit: true})
		res, err := x.Flush(context.Background(), h.db(), h.stage(x.Buffer(), some(2)...))
		if err != nil || res.Written != 2 {
			t.Fatalf("%+v %v", res, err)
		}
		h.wants("2", `select count(*)::text from outbox`)
		h.wantsMark(res.Mark)
		h.exec(`alter table hlc_checkpoint add constraint c check (hlc < 0) not valid`)
		b := h.stage(x.Buffer(), some(2)...)
		if _, err := x.Flush(context.Background(), h.db(), b); sqlState(err) != "23514" || b.Len() != 2 {
			t.Errorf("%v", err)
		}
		h.wants("2", `select count(*)::text from outbox`) // not the rows without the mark
		deleting := h.open(Options{Autocommit: true, Form: RowsDeleted, NoCheckpoint: true})
		if _, err := deleting.Flush(context.Background(), h.db(), h.stage(deleting.Buffer(), some(1)...)); !errors.Is(err, ErrNoTransaction) {
			t.Errorf("rows to be deleted at once, outside of a transaction: %v", err)
		}
	})
}

func TestRowsThatAreDeletedAtOnceLeaveTheTableEmpty(t *testing.T) {
	onEach(t, func(t *testing.T, h *house) {
		h.flush(h.open(Options{}), full()) // one that stays
		x := h.open(Options{Form: RowsDeleted})
		res := h.flush(x, full(), some(1)[0], some(1)[0])
		if res.Written != 2 || len(res.Ignored) != 1 || res.Ignored[0].ID != id(1) {
			t.Errorf("%+v, want 2 written and the one that is there ignored", res)
		}
		h.wants(id(1).String(), `select string_agg(event_id::text, ' ') from outbox`)
		h.wantsMark(res.Mark)
	})
}

// Poolers and proxies ask for other ways to pass arguments than pgx's own choice.
func TestEveryModeOfTheDriverWritesTheSameRow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pgserver.Shared(t, pgserver.V18), byPgx)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		pool, err := pgxpool.New(t.Context(), h.pg.URL(h.name)+"&default_query_exec_mode="+mode)
		if err != nil {
			t.Fatal(err)
		}
		x, err := Open(t.Context(), Pgx(pool), Options{})
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		messages, err := Open(t.Context(), Pgx(pool), Options{Form: Messages})
		if err != nil {
			t.Fatal(err)
		}
		e := full()
		e.Route = mode
		if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			if _, err := x.Flush(t.Context(), Pgx(tx), h.stage(x.Buffer(), e)); err != nil {
				return err
			}
			_, err := messages.Flush(t.Context(), Pgx(tx), h.stage(messages.Buffer(), e))
			return err
		}); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		pool.Close()
	}
	h.wants("5 1", `select count(*) || ' ' || count(distinct to_jsonb(o) - 'id' - 'outbox_route' - 'created_at' - 'hlc') from outbox o`)
}
