package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestALeaseNeedsItsTable(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		_, err := h.db.Leases().Renew(h.ctx(), "a", time.Minute, outbox.LeaseRequest{Of: 6, Want: 6})
		if event.ClassOf(err) != event.Halt || err == nil || !strings.Contains(err.Error(), "walrelay init") {
			t.Fatalf("want a halt that names init, got %v", err)
		}
	})
}
