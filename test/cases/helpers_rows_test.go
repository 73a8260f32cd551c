package cases

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/ops"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// soon bounds what ought to take well under a second, on a machine that runs
// many other things.
const soon = 60 * time.Second

// newRowsHouse is an initialised house on the shared servers, its topic with
// the given number of partitions.
func newRowsHouse(t *testing.T, v pgserver.Version, partitions int) (*rig.House, *kafkaserver.Server) {
	t.Helper()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, partitions, nil))
	h.Init(t)
	return h, k
}

// inserter is a session or transaction that can write rows.
type inserter interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

const insertNumbered = `insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
	values (gen_random_uuid(), gen_random_uuid(), $1, 'Tested', now(), jsonb_build_object('n', $3::bigint), $2)`

// insertRow writes one event whose payload holds n, its number in the order of commits.
func insertRow(t *testing.T, on inserter, route, key string, n int64) {
	t.Helper()
	if _, err := on.Exec(context.Background(), insertNumbered, route, key, n); err != nil {
		t.Fatal(err)
	}
}

// committedRows is what the oracle needs of all events in the table that were
// numbered as insertRow does.
func committedRows(t *testing.T, h *rig.House) []oracle.Commit {
	t.Helper()
	rows, err := h.PG.Conn(t, h.Database).Query(context.Background(), `
		select event_id::text, outbox_route, coalesce(ordering_key, ''), (payload->>'n')::bigint, payload::text from public.outbox`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c oracle.Commit, err error) {
		var value string
		err = row.Scan(&c.EventID, &c.Route, &c.Key, &c.Seq, &value)
		c.Value = []byte(value)
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// queryText asks for one value as text.
func queryText(t *testing.T, h *rig.House, sql string, args ...any) string {
	t.Helper()
	var s string
	if err := h.PG.Conn(t, h.Database).QueryRow(context.Background(), sql, args...).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

// header is the value of a record's header; ok is false when there is none.
func header(r *kgo.Record, name string) (value string, ok bool) {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value), true
		}
	}
	return "", false
}

// byEventID indexes records; a second record of an event fails the test.
func byEventID(t *testing.T, records []*kgo.Record) map[string]*kgo.Record {
	t.Helper()
	all := map[string]*kgo.Record{}
	for _, r := range records {
		id := oracle.EventID(r)
		if all[id] != nil {
			t.Errorf("event %s arrived twice", id)
		}
		all[id] = r
	}
	return all
}

// source is the only source's part of the relay's status.
func source(t *testing.T, r *rig.Relay) ops.SourceStatus {
	t.Helper()
	st, err := r.Status()
	if err != nil {
		t.Fatal(err)
	}
	return st.Sources[0]
}

// forzeTable makes an outbox with a payload column of another type than init
// would give it; init leaves it as it is.
func forzeTable(t *testing.T, h *rig.House, payload string) {
	t.Helper()
	h.Exec(t, `create table outbox (id uuid primary key, event_id uuid not null, outbox_route text not null, event_type text not null,
		status text not null default 'pending', occurred_at timestamptz not null, created_at timestamptz not null default now(),
		payload `+payload+`, ordering_key text, available_at timestamptz, published_at timestamptz)`)
}

// drain writes a last row and waits until its transaction is confirmed, and so
// all that was committed before it.
func drain(t *testing.T, h *rig.House) {
	t.Helper()
	l := newLedger(h)
	l.write(t, "the last")
	l.drained(t, 2*soon)
}

type errorText string

func (e errorText) Error() string { return string(e) }
