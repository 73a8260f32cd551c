package postgres_test

import (
	"database/sql"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walrelay/walrelay/stage/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

// The examples have no database to run on; their functions are run here.
func TestExamplesDoWhatTheySay(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pg := pgserver.Shared(t, pgserver.V18)
	name := pg.NewDatabase(t)
	pg.ExecIn(t, name, postgres.ForzeTable+`; create table orders (id text primary key, paid bool)`)
	pool, err := pgxpool.New(ctx, pg.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db, err := sql.Open("pgx", pg.URL(name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	out, err := postgres.Open(ctx, postgres.Pgx(pool), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := placeOrder(ctx, pool, out, "order-1"); err != nil {
		t.Fatal(err)
	}
	if placeOrder(ctx, pool, out, "order-1") == nil {
		t.Error("an order was placed twice")
	}
	event := uuid.New()
	for run, want := range []int{0, 1} {
		if ignored, err := payOrder(ctx, db, out, "order-1", event); err != nil || ignored != want {
			t.Errorf("run %d: %d ignored, %v", run, ignored, err)
		}
	}
	if err := signal(ctx, pool, out, []byte{0xca, 0xfe}); err != nil {
		t.Error(err)
	}
	var got string
	if err := pool.QueryRow(ctx, `select string_agg(event_type, ' ' order by hlc) from outbox`).Scan(&got); err != nil || got != "OrderPlaced OrderPaid" {
		t.Errorf("the outbox has %s, %v", got, err)
	}
}
