package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestRenewMovesTheFenceOfWhatIsStillHeld(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 3, 3)
		c := h.claim(outbox.Request{Limit: 3})
		h.exec(`update public.outbox set status = 'pending', processing_at = null where hlc = 2`)
		fence, held, err := h.Renew(h.ctx(), c.Fence, append(ids(1, 3), id(1)))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(held)
		same(t, "held", slices.Compact(held), []string{id(1), id(3)})
		if fence <= c.Fence {
			t.Fatalf("fence %s after %s", fence, c.Fence)
		}
		if lost := h.settle(outbox.Outcome{ID: id(1), Fence: c.Fence}, outbox.Outcome{ID: id(3), Fence: fence}); !slices.Equal(lost, []int{0}) {
			t.Fatalf("lost %v", lost)
		}
		h.wantRow(1, "processing attempts=0 processing_at")
		h.wantRow(3, "published attempts=0 published_at processing_at")
	})
}

func TestFiguresAndRetentionOfRowsWithoutStates(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		b := newHouse(t, srv, event.Basic, basicTable, nil)
		b.exec(`insert into public.outbox (aggregate_type, aggregate_id, created_at) select 'a', 'k', now() - n * interval '1 hour' from generate_series(1, 3) n`)
		if f, err := b.Figures(b.ctx()); err != nil || f.Pending != 3 || f.OldestPending < 3*time.Hour {
			t.Fatalf("%+v, %v", f, err)
		}
		b.exec(`truncate public.outbox restart identity; insert into public.outbox (aggregate_type, aggregate_id, published_at) select 'a', 'k', case when n > 1 then now() - n * interval '1 day' end from generate_series(1, 9) n`)
		if r, err := b.Retain(b.ctx(), 36*time.Hour, 5); err != nil || r.Rows != 5 {
			t.Fatalf("deleted %d: %v", r.Rows, err)
		}
		if got := b.ask(`select string_agg(seq::text, ' ' order by seq) from public.outbox`); got != "1 2 3 4" {
			t.Fatalf("left %s", got)
		}
	})
}
