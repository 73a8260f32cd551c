package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/outbox/postgres"
	"github.com/walrelay/walrelay/test/rig"
)

const (
	claimBatch = 500
	claimTimes = 41
	claimFirst = 4 // not counted: connections are made, caches are cold
)

// claimed is a table to claim from: a preset, and the ways its rows are claimed.
type claimed struct {
	preset event.Preset
	modes  []postgres.ClaimMode
	write  string // events $1 … $2
}

var claimedTables = []claimed{
	{event.Forze, []postgres.ClaimMode{postgres.ClaimRow, postgres.ClaimLease}, workloads["jsonb"].write},
	{event.Basic, []postgres.ClaimMode{postgres.ClaimLease}, `insert into outbox (aggregate_type, aggregate_id, event_type, payload)
		select 'orders', 'customer-' || i % 20000, 'OrderPlaced', (` + payload + `)::jsonb from generate_series($1::bigint, $2::bigint) i`},
}

// claims times claims while more and more rows are pending. Between two claims
// as many rows are written as were taken, and nothing is vacuumed: a relay that keeps
// up finds its table so. The ratio is that of the smallest table's median to this one's: 1
// is flat.
func (s *site) claims(t *crew) (results []result) {
	for _, c := range claimedTables {
		within(t, func(t *crew) {
			s.durable(t)
			results = append(results, s.claimsOf(t, c)...)
		})
	}
	return results
}

func (s *site) claimsOf(t *crew, c claimed) (results []result) {
	h := rig.NewHouse(t, s.pg, s.kafka.Brokers(), "unused")
	h.Preset = string(c.preset)
	h.Postgres, h.Source = "capture: poll\n", "after_publish: mark\n"
	h.Init(t)
	conn := s.pg.Conn(t, h.Database)
	written := 0
	write := func(n int) {
		for end := written + n; written < end; written += min(perTx, end-written) {
			if _, err := conn.Exec(context.Background(), c.write, written+1, min(written+perTx, end)); err != nil {
				t.Fatalf("writing rows: %v", err)
			}
		}
	}
	tables := map[postgres.ClaimMode]outbox.Table{}
	for _, mode := range c.modes {
		tables[mode] = s.claimTable(t, h, c.preset, mode)
	}
	base := map[postgres.ClaimMode]float64{}
	for pending, size := 0, 1000; size <= s.claimRows; size *= 10 {
		write(size - pending)
		pending = size
		for _, mode := range c.modes {
			tidy(t, conn)
			took := timeClaims(t, tables[mode], write)
			r := result{Name: fmt.Sprintf("claim %s, %s, %d pending", mode, c.preset, size), P50: quantile(took, 0.5), P99: quantile(took, 0.99)}
			if base[mode] == 0 {
				base[mode] = *r.P50
			}
			r.Ratio = new(base[mode] / *r.P50)
			t.Logf("%s: median %.2f ms, most %.2f ms", r.Name, *r.P50, *quantile(took, 1))
			results = append(results, r)
		}
	}
	return results
}

// claimTable is the table as a relay of the house's has it.
func (s *site) claimTable(t *crew, h *rig.House, preset event.Preset, mode postgres.ClaimMode) outbox.Table {
	schema, err := event.NewSchema(preset, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := s.pg.ConnConfig(h.Database)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	db := postgres.New(postgres.Options{
		Source: "orders", Owner: "bench/" + string(mode), Bookkeeping: "walrelay",
		Connect:  func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, cfg) },
		Classify: func(err error, doing string) error { return fmt.Errorf("%s: %w", doing, err) },
		Tables:   []postgres.Name{{Schema: "public", Name: "outbox"}}, Schema: schema, AfterPublish: postgres.MarkIt, Claim: mode,
	})
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	tables, err := db.Tables(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return tables[0]
}

// timeClaims claims as one relay does that holds all shards, and settles.
func timeClaims(t *crew, table outbox.Table, write func(int)) (took []time.Duration) {
	ctx := context.Background()
	shards := outbox.Shards{Of: 16}
	for n := range shards.Of {
		shards.Own = append(shards.Own, n)
	}
	for n := range claimFirst + claimTimes {
		began := time.Now()
		claim, err := table.Claim(ctx, outbox.Request{Limit: claimBatch, Shards: shards})
		if n >= claimFirst {
			took = append(took, time.Since(began))
		}
		if err != nil || len(claim.Rows) != claimBatch {
			t.Fatalf("claiming: %d rows, want %d: %v", len(claim.Rows), claimBatch, err)
		}
		outcomes := make([]outbox.Outcome, len(claim.Rows))
		for i := range claim.Rows {
			outcomes[i] = outbox.Outcome{ID: claim.Rows[i].ID, Fence: claim.Fence}
		}
		if lost, err := table.Settle(ctx, outcomes); err != nil || len(lost) > 0 {
			t.Fatalf("settling: %d of %d were lost: %v", len(lost), len(outcomes), err)
		}
		write(claimBatch)
	}
	slices.Sort(took)
	return took
}
