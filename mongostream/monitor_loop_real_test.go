package mongostream

import (
	"context"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestAStreamReportsItsPlaceAndAStandbyDoesNot(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	h.opt.CheckInterval = 50 * time.Millisecond
	opened := func() (*Stream, chan event.StreamReport, chan event.State) {
		reports, states := make(chan event.StreamReport, 1000), make(chan event.State, 1000)
		s, err := Open(h.opt, Observer{
			Lag:   func(r event.StreamReport) { reports <- r },
			State: func(st event.State, _ event.Condition) { states <- st },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return s, reports, states
	}
	first, reports, _ := opened()
	h.insert(1)
	b, err := first.Next(ctx(t))
	for err == nil && len(b.Events) == 0 {
		b, err = first.Next(ctx(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	end := b.Spans[len(b.Spans)-1].End
	b.Memory.Release()
	first.Confirm(end)
	var got event.StreamReport
	for ctx := ctx(t); got.At.IsZero() || got.Headroom < 0 || got.CheckpointLag < 0 || got.StreamLag < 0; {
		select {
		case got = <-reports:
		case <-ctx.Done():
			t.Fatalf("the last report: %+v", got)
		}
	}
	_, quiet, states := opened()
	for st := range states {
		if st == event.StateStandby {
			break
		}
	}
	tick := time.NewTicker(5 * h.opt.CheckInterval)
	defer tick.Stop()
	select {
	case r := <-quiet:
		t.Errorf("a standby reports %+v", r)
	case <-tick.C:
	}
}
