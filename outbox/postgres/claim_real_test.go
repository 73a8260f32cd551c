package postgres

import (
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestAFenceIsTheTimeThatTheClaimWrote(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 3, 3)
		c := h.claim(outbox.Request{Limit: 3})
		for n := 1; n <= 3; n++ {
			if got := h.ask(`select processing_at at time zone 'UTC' || '+00' from public.outbox where id = $1::uuid`, id(n)); got != string(c.Fence) {
				t.Fatalf("fence %s, column %s", c.Fence, got)
			}
		}
		// An outcome leaves it, as the application's own poller does.
		h.settle(outbox.Outcome{ID: id(1), Fence: c.Fence}, outbox.Outcome{ID: id(2), Fence: c.Fence, Verdict: outbox.Failed, Error: "gone"})
		h.wantRow(1, "published attempts=0 published_at processing_at")
		h.wantRow(2, "failed attempts=0 processing_at error=gone")
	})
}
