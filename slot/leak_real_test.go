package slot_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// TestFailingStartsNeverLeaveASlotBehind is case C26 (f).
func TestFailingStartsNeverLeaveASlotBehind(t *testing.T) {
	t.Parallel()
	o := fresh(t, pgserver.Shared(t, pgserver.V18), event.Forze)
	conn := connect(t, o)
	run(t, conn, `create table outbox (id uuid)`)
	for range 20 {
		_, err := slot.Apply(t.Context(), conn, o)
		halted(t, err, slot.AnchorTable, "public.outbox", "no column")
		_, err = slot.VerifyForStream(t.Context(), conn, o)
		if event.ClassOf(err) != event.Halt {
			t.Fatalf("got %v", err)
		}
	}
	if n := slotsOf(t, conn); n != 0 {
		t.Fatalf("%d slots are left", n)
	}
}

func TestSlotIsDroppedAgainWhenItsMarkerCannotBeWritten(t *testing.T) {
	t.Parallel()
	o := fresh(t, pgserver.Shared(t, pgserver.V17), event.Forze)
	conn := connect(t, o)
	// The bookkeeping is there and takes no rows.
	run(t, conn, `create schema walrelay`)
	run(t, conn, `create table walrelay.source (name text primary key check (name <> 'orders'), system_identifier text, timeline int, slot text,
		confirmed_lsn pg_lsn, phase text, publication text, updated_at timestamptz)`)
	for range 3 {
		if _, err := slot.Apply(t.Context(), conn, o); err == nil || !strings.Contains(err.Error(), "writing the marker") {
			t.Fatalf("got %v", err)
		}
		if n := slotsOf(t, conn); n != 0 {
			t.Fatalf("%d slots are left", n)
		}
	}
	run(t, conn, `alter table walrelay.source drop constraint source_name_check`)
	apply(t, conn, o)
}

// TestGivingUpOnASlotThatWaitsLeavesNone: a new slot waits for transactions that
// are running, and its maker may not.
func TestGivingUpOnASlotThatWaitsLeavesNone(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := fresh(t, srv, event.Forze)
		conn, writer, watcher := connect(t, o), connect(t, o), connect(t, o)
		run(t, writer, `begin`)
		run(t, writer, `select txid_current()`)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := slot.Apply(ctx, conn, o)
			failed <- err
		}()
		for ask[int](t, watcher, `select count(*)::int from pg_replication_slots where slot_name = $1`, o.Slot) == 0 {
			run(t, watcher, `select pg_sleep(0.02)`)
		}
		cancel()
		if err := <-failed; err == nil {
			t.Fatal("the slot was made beside a running transaction")
		}
		run(t, writer, `rollback`)
		for ask[bool](t, watcher, `select exists (select from pg_replication_slots where slot_name = $1 and active)`, o.Slot) {
			run(t, watcher, `select pg_sleep(0.02)`)
		}
		if n := slotsOf(t, watcher); n != 0 {
			t.Fatal("the slot is left behind")
		}
	})
}

func TestSlotWhoseMakingWasNotAnsweredIsDroppedAgain(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		o := fresh(t, srv, event.Forze)
		watcher := connect(t, o)
		lost := make(chan struct{}, 1)
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return &losesAnswer{Conn: conn, to: "pg_create_logical_replication_slot", lost: lost}, err
		}
		_, err := slot.Apply(t.Context(), connect(t, o), o)
		if err == nil || len(lost) == 0 {
			t.Fatalf("the answer was not lost: %v", err)
		}
		if n := slotsOf(t, watcher); n != 0 {
			t.Fatalf("the slot is left behind: %v", err)
		}
	})
}

// losesAnswer breaks when the answer to a statement arrives.
type losesAnswer struct {
	net.Conn
	to   string
	sent atomic.Bool
	lost chan<- struct{}
}

func (c *losesAnswer) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.to) {
		c.sent.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *losesAnswer) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.sent.Load() && n > 0 {
		select {
		case c.lost <- struct{}{}:
		default:
		}
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
