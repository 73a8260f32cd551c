package tablecases

// C70 Two replicas by accident, where they poll.
// Source: estuary/connectors#1705, kgrzybek/sample-dotnet-core-cqrs-api#15.
// Ideal: two and five copies of one configuration share the work without a
// duplicate and in order; when one is killed the others have its part within 30 s.
// (20 s of load instead of 10 minutes; the copy is killed at once, so duplicates are
// bounded by what it had under way.)

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC70CopiesThatPollShareTheWork(t *testing.T) {
	t.Parallel()
	for _, copies := range []int{2, 5} {
		t.Run(fmt.Sprint(copies), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) { copiesShare(t, v, copies) })
		})
	}
}

func copiesShare(t *testing.T, v pgserver.Version, copies int) {
	const batch = 50
	tb := polled(t, v, fmt.Sprintf("batch: %d, interval: 100ms, lease: %s", batch, lease))
	houses := make([]*rig.House, copies)
	for i := range houses {
		houses[i] = tb.House
	}
	relays := startAll(t, houses...)
	load := func(d time.Duration) {
		end := time.Now().Add(d)
		for time.Now().Before(end) {
			tb.fill(t, 20, 50, 5)
		}
	}
	load(7 * time.Second)
	tb.published(t, soon)
	tb.judge(t, 0) // nobody was killed yet
	for i, r := range relays {
		if n := publishedBy(t, r); n == 0 {
			t.Errorf("copy %d of %d did nothing", i+1, copies)
		}
	}
	var loading sync.WaitGroup
	loading.Go(func() { load(7 * time.Second) })
	defer loading.Wait()
	relays[0].Kill()
	killed := time.Now()
	loading.Wait()
	tb.published(t, time.Until(killed.Add(30*time.Second)))
	tb.judge(t, 4*batch) // what it may have had in flight
	stopAll(t, relays[1:]...)
}
