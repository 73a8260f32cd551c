package postgres

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

// explain runs the statement as the table would, and rolls it back.
func (h *house) explain(s statement, options string) (plan string) {
	h.t.Helper()
	s.sql = "EXPLAIN (" + options + ") " + s.sql
	s.row = func(v [][]byte) error { plan += string(v[0]) + "\n"; return nil }
	err := h.db.converse(h.ctx(), "explaining", func(ctx context.Context, tx *tx) error {
		return tx.run(ctx, append(h.pinned(), statement{sql: byIndex}, s)...)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return plan
}

var buffersHit = regexp.MustCompile(`Buffers: shared hit=(\d+)(?: read=(\d+))?`)

// buffers is the number of pages that the whole plan looked at.
func buffers(t *testing.T, plan string) (n int) {
	t.Helper()
	m := buffersHit.FindStringSubmatch(plan) // the topmost node's includes the others'
	if m == nil {
		t.Fatalf("no buffers in %s", plan)
	}
	for _, s := range m[1:] {
		if k, err := strconv.Atoi(s); err == nil {
			n += k
		}
	}
	return n
}

// requests of a claim, from the plainest to one with every condition.
var requests = map[string]outbox.Request{
	"plain":  {Limit: 100},
	"shards": {Limit: 100, Shards: outbox.Shards{Of: 4, Own: []int{1, 3}}},
	"all": {
		Limit: 100, Shards: outbox.Shards{Of: 4, Own: []int{1, 3}}, Held: []string{"k5", "k6"}, Heads: []string{id(5)}, Loose: []string{"route2"},
		Except: ids(1, 50),
	},
}

func TestClaimsWalkTheIndexWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
			h := newHouse(t, srv, event.Forze, forzeTable, func(o *Options) { o.Claim = mode })
			h.exec(`alter table public.outbox set (autovacuum_enabled = off); analyze public.outbox`) // of the empty table
			h.insert(1, 20_000, 1000)
			for _, statistics := range []string{"of an empty table", "fresh", "of a published table"} {
				switch statistics {
				case "fresh":
					h.exec(`vacuum analyze public.outbox`)
				case "of a published table":
					h.exec(`update public.outbox set status = 'published'`)
					h.exec(`vacuum analyze public.outbox`)
					h.exec(`update public.outbox set status = 'pending'`)
					h.exec(`vacuum public.outbox`)
				}
				for name, req := range requests {
					take := h.selection(&req, "", nil)
					if mode == ClaimRow {
						take = h.claimStatement(&req, req.Limit)
					} else {
						h.wantPlan("sole "+name+", statistics "+statistics, h.soleSelection(&req, "route1", nil))
					}
					h.wantPlan(string(mode)+" "+name+", statistics "+statistics, take)
				}
				of := make([]int, 300)
				outcomes, marks := make([]outbox.Outcome, len(of)), make([]outbox.Mark, len(of))
				for i := range of {
					of[i], outcomes[i].ID, marks[i].ID = i, id(i+1), id(i+1)
					outcomes[i].Fence = "2026-01-01"
				}
				h.wantPlan("settle", h.settlement(outbox.Published, outcomes, of))
				h.wantPlan("delete", h.deletion(ids(1, len(of))))
				h.wantPlan("retry", h.settlement(outbox.Retry, outcomes, of))
				h.wantPlan("mark", h.marking(marks, of, outbox.Published))
			}
		}
	})
}

// wantPlan refuses plans that read or sort more than they need.
func (h *house) wantPlan(what string, s statement) {
	h.t.Helper()
	plan := h.explain(s, "ANALYZE, BUFFERS, TIMING OFF")
	for _, word := range []string{"Seq Scan", "Bitmap", "Hash Join", "Merge Join", "external"} {
		if strings.Contains(plan, word) {
			h.t.Fatalf("%s: the plan has %s:\n%s", what, word, plan)
		}
	}
	for line := range strings.SplitSeq(plan, "\n") {
		// Rows that a node gives or throws away: never a large part of the table.
		if m := regexp.MustCompile(`actual rows=(\d+)|Removed by Filter: (\d+)|Removed by Join Filter: (\d+)`).FindStringSubmatch(line); m != nil {
			if n, _ := strconv.Atoi(m[1] + m[2] + m[3]); n > 2000 {
				h.t.Fatalf("%s: %s in\n%s", what, strings.TrimSpace(line), plan)
			}
		}
	}
}

func TestAClaimReadsNoMoreOfALargeTableThanOfASmallOne(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		small, large := newHouse(t, srv, event.Forze, forzeTable, nil), newHouse(t, srv, event.Forze, forzeTable, nil)
		small.insert(1, 1000, 100)
		large.insert(1, 100_000, 100)
		for name, req := range requests {
			few, many := buffers(t, small.explain(small.claimStatement(&req, 100), "ANALYZE, BUFFERS")), buffers(t, large.explain(large.claimStatement(&req, 100), "ANALYZE, BUFFERS"))
			if many > 3*few+200 {
				t.Errorf("%s: %d pages of 100 000 rows, %d of 1000", name, many, few)
			}
			t.Logf("%s: %d pages of 100 000 rows, %d of 1000", name, many, few)
		}
	})
}

// BenchmarkClaimTime is the time of one claim of 500 rows (rolled back) among more and more
// pending ones, and behind more and more dead ones that a snapshot keeps.
func BenchmarkClaimTime(b *testing.B) {
	srv := pgserver.Start(b, pgserver.Options{Version: pgserver.V18})
	h := newHouse(b, srv, event.Forze, forzeTable, nil)
	h.exec(`alter table public.outbox set (autovacuum_enabled = off)`)
	req := outbox.Request{Limit: 500}
	claim := func() (best time.Duration) {
		best = time.Hour
		for range 7 {
			began := time.Now()
			h.explain(h.claimStatement(&req, 500), "ANALYZE, TIMING OFF")
			best = min(best, time.Since(began))
		}
		return best
	}
	have := 0
	for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
		h.stock(have+1, n)
		have = n
		h.exec(`analyze public.outbox`)
		b.ReportMetric(float64(claim().Microseconds())/1000, "ms-of-"+strconv.Itoa(n))
	}
	held, err := srv.Conn(b, h.name).Begin(h.ctx())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := held.Exec(h.ctx(), `set transaction isolation level repeatable read; select count(*) from (select from public.outbox limit 1) x`); err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{10_000, 100_000, 300_000} {
		h.exec(`update public.outbox set status = 'published' where status = 'pending' and hlc <= $1`, n)
		b.ReportMetric(float64(claim().Microseconds())/1000, "ms-behind-"+strconv.Itoa(n)+"-dead")
	}
	for b.Loop() {
	}
}
