package ops_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

// fakeSource is what the probes read.
type fakeSource struct {
	mu       sync.Mutex
	state    event.State
	progress event.Progress
	events   int64
}

func (f *fakeSource) set(state event.State, p event.Progress, inFlight int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state, f.progress, f.events = state, p, inFlight
}

func (f *fakeSource) probes() ops.SourceProbes {
	return ops.SourceProbes{
		Progress: func() event.Progress { f.mu.Lock(); defer f.mu.Unlock(); return f.progress },
		State: func() (event.State, event.Condition) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.state, event.Condition{}
		},
		InFlight: func() (int64, int64) { f.mu.Lock(); defer f.mu.Unlock(); return f.events * 10, f.events },
	}
}

func TestLagSecondsTellTheAgeOfTheOldestUnpublishedCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := ops.New(ops.Options{})
		f := &fakeSource{}
		s := o.Source("orders", f.probes())
		done := make(chan struct{})
		go func() { defer close(done); o.Run(ctx) }()
		lag := func() *float64 { return o.Status().Sources[0].LagSeconds }

		f.set(event.StateConnecting, event.Progress{}, 0)
		if lag() != nil {
			t.Error("a lag before anything is known")
		}
		f.set(event.StateStreaming, event.Progress{Server: 100, Received: 100, Published: 100}, 0)
		s.Published(1, time.Now().UnixMicro())
		time.Sleep(time.Hour) // idle
		if l := lag(); l == nil || *l != 0 {
			t.Errorf("idle: lag %v, want 0", l)
		}
		// After the idle hour one event comes: it is young, whatever the last one's age.
		f.set(event.StateStreaming, event.Progress{Server: 200, Received: 200, Published: 100}, 1)
		time.Sleep(3 * time.Second)
		if l := lag(); l == nil || *l < 3 || *l > 4.1 {
			t.Errorf("one event for 3 s: lag %v, want 3 to 4", *l)
		}
		// Catching up on a backlog: as old as the newest published commit.
		s.Published(1, time.Now().Add(-time.Second).UnixMicro())
		if l := lag(); l == nil || *l < .9 || *l > 1.1 {
			t.Errorf("newest published commit is 1 s old: lag %v, want 1", *l)
		}
		// Out of reach: nobody knows what the server has; the figure grows.
		f.set(event.StateDisconnected, event.Progress{Server: 200, Received: 200, Published: 200}, 0)
		time.Sleep(time.Minute)
		if l := lag(); l == nil || *l < 60 {
			t.Errorf("disconnected for a minute: lag %v, want at least 60", *l)
		}
		f.set(event.StateStandby, event.Progress{}, 0)
		if lag() != nil {
			t.Error("a standby knows nothing of the lag")
		}
		cancel()
		<-done
	})
}

func TestTheLadderShowsWhereTheLogIsHeldBack(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{})
	f := &fakeSource{}
	s := o.Source("orders", f.probes())
	if n := len(o.Status().Sources[0].Ladder); n != 0 {
		t.Errorf("%d rungs before any position is known, want 0", n)
	}
	f.set(event.StateStreaming, event.Progress{Server: 0x900, Received: 0x800, Published: 0x400}, 0)
	s.SlotReport(event.SlotReport{ServerHead: 0x1000, SentLSN: 0x900, RestartLSN: 0x100, SafeBytes: -1, WALStatus: "reserved"})
	families, _ := scrape(t, o)
	for rung, want := range map[string]float64{"sent": 0x700, "received": 0x800, "published": 0xC00} {
		if got, ok := value(t, families, "walrelay_lag_bytes", "orders", rung); !ok || got != want {
			t.Errorf("lag of %s: %v, want %v", rung, got, want)
		}
	}
	if _, ok := value(t, families, "walrelay_lag_bytes", "orders", "confirmed"); ok {
		t.Error("a figure for a rung that is not known")
	}
	if got, _ := value(t, families, "walrelay_position_bytes", "orders", "server"); got != 0x1000 {
		t.Errorf("server position %v, want the newer of two reports", got)
	}
	if _, ok := value(t, families, "walrelay_slot_safe_bytes", "orders"); ok {
		t.Error("safe WAL shown although there is no limit")
	}
	if got, _ := value(t, families, "walrelay_slot_wal_status", "reserved"); got != 1 {
		t.Errorf("wal_status reserved is %v, want 1", got)
	}
}

func TestRatesAreThoseOfTheLastTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := ops.New(ops.Options{})
		s := o.Source("orders", streaming())
		done := make(chan struct{})
		go func() { defer close(done); o.Run(ctx) }()
		time.Sleep(500 * time.Millisecond) // between the steps
		for range 25 {
			s.Received(40, 0)
			time.Sleep(time.Second)
		}
		if got := o.Status().Sources[0].ReceivedPerSecond; got != 40 {
			t.Errorf("%v per second, want 40", got)
		}
		time.Sleep(11 * time.Second)
		if got := o.Status().Sources[0].ReceivedPerSecond; got != 0 {
			t.Errorf("%v per second after silence, want 0", got)
		}
		cancel()
		<-done
	})
}

func TestCountersGoOnWhenASourceStartsAgain(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{})
	o.Source("orders", ops.SourceProbes{}).Received(5, 5)
	o.Source("orders", streaming()).Received(2, 2)
	st := o.Status()
	if len(st.Sources) != 1 || st.Sources[0].Events.Received != 7 || st.Sources[0].State != event.StateStreaming {
		t.Errorf("%+v, want one source with 7 events and the new probes", st.Sources)
	}
}
