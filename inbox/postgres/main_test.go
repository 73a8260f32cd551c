package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestMain(m *testing.M) { pgserver.Main(m) }

// onEach runs body on the oldest and the newest Postgres, in parallel.
func onEach(t *testing.T, body func(*testing.T, *pgserver.Server)) {
	t.Helper()
	t.Parallel()
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			body(t, pgserver.Shared(t, v))
		})
	}
}

// house is a database with an inbox and a table that handlers write to.
type house struct {
	t    *testing.T
	url  string
	pool *pgxpool.Pool
}

func newHouse(t *testing.T, pg *pgserver.Server) *house {
	t.Helper()
	h := &house{t: t, url: pg.URL(pg.NewDatabase(t))}
	var err error
	if h.pool, err = pgxpool.New(t.Context(), h.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.pool.Close)
	h.exec(postgres.DDL(nil))
	h.exec(`create table payments (id text, execution uuid); create table accounts (id int primary key, money int not null); insert into accounts values (1, 0), (2, 0)`)
	return h
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	if _, err := h.pool.Exec(context.Background(), sql, args...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) count(sql string, args ...any) int {
	h.t.Helper()
	var n int
	if err := h.pool.QueryRow(context.Background(), sql, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// holds fails unless so many payments and marks are committed.
func (h *house) holds(payments, marks int) {
	h.t.Helper()
	if p, m := h.count(`select count(*) from payments`), h.count(`select count(*) from inbox`); p != payments || m != marks {
		h.t.Errorf("%d payments and %d marks, want %d and %d", p, m, payments, marks)
	}
}

func (h *house) inbox(core inbox.Options, opts postgres.Options) *postgres.Inbox {
	h.t.Helper()
	if core.Route == "" {
		core.Route = "payments"
	}
	c, err := inbox.New(core)
	if err != nil {
		h.t.Fatal(err)
	}
	in, err := postgres.New(c, opts)
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// is fails unless a record had that outcome without an error.
func is(t *testing.T, what string, want, got inbox.Outcome, err error) {
	t.Helper()
	if got != want || err != nil {
		t.Errorf("%s: %s, %v, want %s", what, got, err, want)
	}
}

func eventID(n int) string { return fmt.Sprintf("0198f3a0-0000-7000-8000-%012d", n) }

// published is a record as the relay publishes it and franz-go hands it out;
// further headers alternate name and value.
func published(n int, offset int64, headers ...string) inbox.Record {
	r := &kgo.Record{Topic: "orders", Partition: 1, Offset: offset, Key: []byte("order-1"), Value: []byte(`{"n": 1}`)}
	headers = append([]string{"forze_event_id", eventID(n), "forze_type", "OrderPlaced"}, headers...)
	for i := 0; i < len(headers); i += 2 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: headers[i], Value: []byte(headers[i+1])})
	}
	return fromKafka(r)
}

func fromKafka(r *kgo.Record) inbox.Record {
	out := inbox.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, inbox.Header{Key: h.Key, Value: h.Value})
	}
	return out
}
