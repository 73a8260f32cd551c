//go:build !race

package publish

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/walrelay/walrelay/event"
)

// What remains is franz-go's, per batch. (The race detector makes sync.Pool
// forget, hence the build tag.)
func TestPublishDoesNotAllocatePerRecord(t *testing.T) {
	var decided atomic.Int64
	pub := blackhole(t, &decided)
	rec := record("bench", "key", 1)
	rec.Value = make([]byte, 500)
	publish := func() {
		if err := pub.Publish(context.Background(), rec, event.Ticket{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 200_000 { // fills the pools
		publish()
	}
	if n := testing.AllocsPerRun(100_000, publish); n > 0 {
		t.Errorf("%v allocations per record, want 0", n)
	}
}
