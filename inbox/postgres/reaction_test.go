package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/stage"
	stagepg "github.com/walrelay/walrelay/stage/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

const outboxTable = `create table public.outbox (
	id uuid primary key, outbox_route text not null, event_id uuid not null, event_type text not null,
	tenant_id uuid, execution_id uuid, correlation_id uuid, causation_id uuid, occurred_at timestamptz not null, payload jsonb not null,
	status text not null, created_at timestamptz not null, published_at timestamptz, processing_at timestamptz, available_at timestamptz,
	last_error text, attempts int not null, ordering_key text, traceparent text, hlc bigint, unique (outbox_route, event_id));
create table public.hlc_checkpoint (node_key text primary key, hlc bigint not null)`

// The two halves of the library together: what a handler stages names the event as
// its cause, goes on with its trace, sorts after it, and shares the fate of the mark.
func TestReactionCarriesOnFromItsCauseAndSharesTheFateOfTheMark(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		const (
			correlation = "0198f3a0-0000-7000-8000-00000000aaaa"
			tenant      = "0198f3a0-0000-7000-8000-00000000bbbb"
			trace       = "0af7651916cd43dd8448eb211c80319c"
		)
		h := newHouse(t, pg)
		h.exec(outboxTable)
		out, err := stagepg.Open(t.Context(), stagepg.Pgx(h.pool), stagepg.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// The other service's clock is 3 s ahead, within the allowed drift.
		cause, err := hlc.Pack(time.Now().Add(3*time.Second).UnixMilli(), 5)
		if err != nil {
			t.Fatal(err)
		}
		record := func(n int) inbox.Record {
			return published(n, int64(n), "forze_hlc", (cause + hlc.Stamp(n)).String(), "forze_correlation_id", correlation, "forze_tenant_id", tenant,
				"traceparent", "00-"+trace+"-b7ad6b7169203331-01")
		}
		in := h.inbox(inbox.Options{Clock: out.Clock(), TenantFromHeaders: true}, postgres.Options{})
		fail := true
		react := func(ctx context.Context, db stagepg.DB, m inbox.Message) error {
			ctx = stage.WithIdentity(ctx, stage.Identity(m.Identity))
			b := out.Buffer()
			if _, err := b.Stage(ctx, stage.Event{Route: "payments", Type: "OrderPaid", Key: string(m.Key), Payload: map[string]int{"n": 1}}); err != nil {
				return err
			}
			if _, err := out.Flush(ctx, db, b); err != nil {
				return err
			}
			if fail {
				return errNoMoney
			}
			return nil
		}
		viaPgx := func(n int) (inbox.Outcome, error) {
			return in.Process(t.Context(), h.pool, record(n), func(ctx context.Context, tx pgx.Tx, m inbox.Message) error { return react(ctx, stagepg.Pgx(tx), m) })
		}
		db := h.sql()
		viaSQL := func(n int) (inbox.Outcome, error) {
			return in.ProcessSQL(t.Context(), db, record(n), func(ctx context.Context, tx *sql.Tx, m inbox.Message) error { return react(ctx, stagepg.SQL(tx), m) })
		}
		for n, process := range map[int]func(int) (inbox.Outcome, error){1: viaPgx, 2: viaSQL} {
			fail = true
			if _, err := process(n); !errors.Is(err, errNoMoney) {
				t.Errorf("event %d: %v", n, err)
			}
			if left := h.count(`select (select count(*) from outbox where causation_id = $1::uuid) + (select count(*) from inbox where message_id = $1::uuid::text)`, eventID(n)); left != 0 {
				t.Errorf("event %d: %d rows are left of what was rolled back", n, left)
			}
			fail = false
			for i, want := range []inbox.Outcome{inbox.Handled, inbox.Duplicate} {
				got, err := process(n)
				is(t, []string{"first", "second"}[i], want, got, err)
			}
			if found := h.count(`select count(*) from outbox where outbox_route = 'payments' and correlation_id = $1 and tenant_id = $2
				and causation_id = $3 and execution_id is not null and traceparent like '00-' || $4 || '-%-01' and hlc > $5`,
				correlation, tenant, eventID(n), trace, int64(cause)+int64(n)); found != 1 {
				t.Errorf("event %d: %d reactions as they should be", n, found)
			}
		}
		if n := h.count(`select count(*) from outbox`); n != 2 {
			t.Errorf("%d reactions to 2 events", n)
		}
	})
}
