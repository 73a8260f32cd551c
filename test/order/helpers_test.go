// Package order runs the real relay with routes that ask for the order of stamps.
package order

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const soon = 30 * time.Second

// mode is what a route says of its order.
type mode string

const (
	byCommit  mode = "order: commit"
	byStamp   mode = "order: hlc"
	withinKey mode = "order: hlc, within_key: commit"
)

// patient bounds let nothing go by time: what goes in a test's life goes because no
// transaction is open that could come before it.
const patient = "transaction: 10m, staged: 50ms, clock_error: 0s, every: 50ms, late_header: true, on_source_stall: block"

// newHouse is a house that is not initialised, all of it routed to one topic.
func newHouse(t *testing.T, pg *pgserver.Server, partitions int, m mode, order string) (*rig.House, *kafkaserver.Server) {
	t.Helper()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, partitions, nil))
	h.Routes = fmt.Sprintf(`"*": {topic: %s, %s}`, h.Topic, m)
	h.Top = "order: {" + order + "}"
	return h, k
}

// onEach runs a test on the oldest and the newest Postgres.
func onEach(t *testing.T, f func(t *testing.T, v pgserver.Version)) {
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			f(t, v)
		})
	}
}

// session is a connection, a pool or a transaction.
type session interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// stage writes one event; its name is its payload and tells it apart. Stamp zero writes NULL.
func stage(t testing.TB, on session, key, name string, stamp hlc.Stamp) {
	t.Helper()
	if err := stageOn(t.Context(), on, key, name, stamp); err != nil {
		t.Fatal(err)
	}
}

func stageOn(ctx context.Context, on session, key, name string, stamp hlc.Stamp) error {
	_, err := on.Exec(ctx, `insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, hlc)
		values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), to_jsonb($2::text), $1, nullif($3::bigint, 0))`, key, name, int64(stamp))
	return err
}

func begin(t testing.TB, h *rig.House) pgx.Tx {
	t.Helper()
	tx, err := h.PG.Conn(t, h.Database).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func commit(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ask answers one value as text.
func ask(t testing.TB, h *rig.House, sql string, args ...any) (s string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), h.PG.URL(h.Database)) // a look may be one of hundreds
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&s); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return s
}

// clock is a writer's clock that is wrong by so much.
func clock(wrong time.Duration) *hlc.Clock {
	return hlc.New(func() time.Time { return time.Now().Add(wrong) }, 0)
}

// names are the events' names in the order of their partition, one after the other.
func names(records []*kgo.Record) string {
	var all []string
	for _, rec := range records {
		all = append(all, strings.Trim(string(rec.Value), `"`))
	}
	return strings.Join(all, " ")
}

// arrives waits for so many records and wants these names in this order.
func arrives(t *testing.T, k *kafkaserver.Server, h *rig.House, n int, want string) {
	t.Helper()
	if got := names(k.ConsumeN(t, n, soon, h.Topic)); got != want {
		t.Errorf("the order is\n\t%s, want\n\t%s", got, want)
	}
}

// received waits until the relay has read so many events of the log.
func received(t *testing.T, r *rig.Relay, source int, n int64) {
	t.Helper()
	r.Eventually(fmt.Sprintf("%d events read", n), soon, func() error {
		st, err := r.Status()
		if err == nil && st.Sources[source].Events.Received < n {
			err = fmt.Errorf("%d are", st.Sources[source].Events.Received)
		}
		return err
	})
}

func header(rec *kgo.Record, name string) string {
	for _, h := range rec.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// judgement of records by their stamps.
type judgement struct{ late, inversions, inversionsOfKey int }

// judge compares each record with the greatest stamp before it, of its partition and
// of its key. Late ones, which say so, are counted and left out.
func judge(t testing.TB, records []*kgo.Record) (j judgement) {
	t.Helper()
	partition, key := map[string]hlc.Stamp{}, map[string]hlc.Stamp{}
	for _, rec := range records {
		if header(rec, "walrelay_late") != "" {
			j.late++
			continue
		}
		stamp, err := hlc.Parse(header(rec, "forze_hlc"))
		if err != nil {
			t.Fatalf("record %d/%d has no stamp: %v", rec.Partition, rec.Offset, err)
		}
		of := fmt.Sprint(rec.Topic, rec.Partition)
		if stamp < partition[of] {
			j.inversions++
		}
		if stamp < key[string(rec.Key)] {
			j.inversionsOfKey++
		}
		partition[of], key[string(rec.Key)] = max(partition[of], stamp), max(key[string(rec.Key)], stamp)
	}
	return j
}

// stop ends a relay that must end well.
func stop(t *testing.T, r *rig.Relay) {
	t.Helper()
	if code, took := r.Stop(); code != 0 || took > 15*time.Second {
		t.Errorf("the stop took %s and exited %d, want 0 at once", took, code)
	}
}

// looked waits until the relay has looked so many times at the clock and the open
// transactions of the house's server.
func looked(t testing.TB, h *rig.House, times int) {
	t.Helper()
	seen := ""
	for range times + 1 {
		rig.Eventually(t, "another look at the clock", soon, func() error {
			at := ask(t, h, `select coalesce(max(query_start), 'epoch')::text from pg_stat_activity
				where datname = current_database() and application_name like 'walrelay%' and query like '%pg_current_wal_insert_lsn()%wal_segment_size%'`)
			if strings.HasPrefix(at, "1970") || at == seen {
				return fmt.Errorf("the last was at %s", at)
			}
			seen = at
			return nil
		})
	}
}
