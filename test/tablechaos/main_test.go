// Package tablechaos kills relays that read the outbox table or mark its rows,
// under load, and judges what arrived and what the table says against what was
// committed.
package tablechaos

import (
	"os"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m, 3) }

// length is how long relays are killed: a minute, or what WALRELAY_TEST_CHAOS says
// (make chaos: ten minutes).
func length(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("WALRELAY_TEST_CHAOS")
	if text == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("WALRELAY_TEST_CHAOS: %v", err)
	}
	return d
}

// pause lets the load run on.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
