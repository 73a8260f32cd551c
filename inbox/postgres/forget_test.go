package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestForgetTakesOldMarksOfItsRouteInBoundedPieces(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		h.exec(`drop index inbox_processed_at`) // as in a table that others made; rows then come in another order
		h.exec(`insert into inbox select route, 'm' || n, now() - n * interval '1 hour' from generate_series(0, 99) n, unnest(array['payments', 'mails']) route`)
		keep := postgres.Retention{Keep: 49*time.Hour + 30*time.Minute, Batch: 20, Batches: 2}
		for i, want := range []int64{40, 10, 0} {
			if n, err := in.Forget(t.Context(), h.pool, keep); n != want || err != nil {
				t.Errorf("call %d forgot %d, %v, want %d", i, n, err, want)
			}
			if i == 0 && h.count(`select count(*) from inbox where inbox_route = 'payments' and message_id = 'm99'`) != 0 {
				t.Error("the oldest are not the first to go")
			}
		}
		if n := h.count(`select count(*) from inbox where inbox_route = 'payments'`); n != 50 {
			t.Errorf("%d marks are left, want the 50 young ones", n)
		}
		if n := h.count(`select count(*) from inbox where inbox_route = 'mails'`); n != 100 {
			t.Errorf("%d marks of the other route are left, want 100", n)
		}
		for _, r := range []postgres.Retention{{}, {Keep: -1}, {Keep: time.Hour, Batch: -1}, {Keep: time.Hour, Batches: -1}} {
			if _, err := in.Forget(t.Context(), h.pool, r); err == nil {
				t.Errorf("%+v is accepted", r)
			}
		}
	})
}

// A consumer has inserted the mark, an old one that is due, and is not finished.
func TestForgetDoesNotWaitForConsumers(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		h.exec(`insert into inbox values ('payments', 'held', now() - interval '9 days'), ('payments', 'free', now() - interval '8 days')`)
		tx, err := h.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		if _, err := tx.Exec(t.Context(), `select from inbox where message_id = 'held' for update`); err != nil {
			t.Fatal(err)
		}
		if n, err := in.Forget(t.Context(), h.pool, postgres.Retention{Keep: time.Hour}); n != 1 || err != nil {
			t.Errorf("forgot %d, %v, want the free one", n, err)
		}
	})
}

func TestTableMayHaveAnyName(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		h.exec(`create schema "Pay"`)
		table := pgx.Identifier{"Pay", `in"box`}
		h.exec(postgres.DDL(table))
		h.exec(postgres.DDL(table)) // may be repeated
		in := h.inbox(inbox.Options{}, postgres.Options{Table: table})
		for _, want := range []inbox.Outcome{inbox.Handled, inbox.Duplicate} {
			got, err := in.Process(t.Context(), h.pool, published(1, 1), pay)
			is(t, table.Sanitize(), want, got, err)
		}
		if n := h.count(`select count(*) from "Pay"."in""box"`); n != 1 {
			t.Errorf("%d marks", n)
		}
		if _, err := in.Forget(t.Context(), h.pool, postgres.Retention{Keep: time.Hour}); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	core, err := inbox.New(inbox.Options{Route: "payments"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		opts postgres.Options
		says string
	}{
		{postgres.Options{Table: pgx.Identifier{"pay", ""}}, "empty part"},
		{postgres.Options{Runs: -1}, "runs"},
		{postgres.Options{Isolation: "chaos"}, "isolation"},
	} {
		if _, err := postgres.New(core, c.opts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.opts, err)
		}
	}
}
