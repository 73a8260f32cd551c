package tablecases

// C58 Batch outlives its own lease.
// Source: langwatch/langwatch#7037.
// Ideal: while a relay lives its claims are renewed, however slow the broker is:
// no duplicate. A claim that is lost all the same is logged and counted. (A broker
// that takes longer than the lease for each record is a linger of 8 s against a
// lease of 3 s; the original has 500 ms × 100 rows against 10 s.)

import (
	"fmt"
	"testing"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC58ClaimsOfALivingRelayAreRenewed(t *testing.T) {
	t.Parallel()
	for _, claim := range []string{"row", "lease"} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) {
				tb := polled(t, v, fmt.Sprintf("claim: %s, batch: 100, interval: 200ms, lease: %s, reclaim_after: %s", claim, lease, lease))
				slow := tb.variant(func(h *rig.House) { h.Kafka += "linger: 8s\n" })
				first := startAll(t, slow)[0]
				tb.fill(t, 300, 30, 100)
				if claim == "row" {
					tb.becomes(t, "true", soon, `select (count(*) > 0)::text from public.outbox where status = 'processing'`)
				}
				// The second wants its share while the first has everything under way.
				second := startAll(t, slow)[0]
				tb.fill(t, 300, 30, 100)
				tb.published(t, 2*soon)
				stopAll(t, first, second)
				tb.judge(t, 0)
				if got := tb.ask(t, `select max(attempts)::text from public.outbox`); got != "0" {
					t.Errorf("a row has %s attempts: somebody took it away", got)
				}
			})
		})
	}
}

func TestC58LostClaimIsCountedAndSaid(t *testing.T) {
	t.Parallel()
	tb := polled(t, pgserver.V18, "batch: 100, interval: 200ms")
	r := startAll(t, tb.variant(lingering("5s")))[0]
	tb.fill(t, 10, 10, 10)
	tb.becomes(t, "processing 10", soon, countBy)
	// Somebody else's reaper, or an operator, takes the claims away.
	tb.Exec(t, `update public.outbox set status = 'pending', processing_at = null, available_at = now() + interval '1 hour'`)
	rig.Eventually(t, "the lost claims in the metrics", soon, func() error {
		if n := r.Metric("walrelay_claims_lost_total"); n != 10 {
			return fmt.Errorf("they count %v", n)
		}
		return nil
	})
	contains(t, "the log", r.Log(), "lost")
	stopAll(t, r)
}
