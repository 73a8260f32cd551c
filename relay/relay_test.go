package relay

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
)

// rig runs a relay over fakes inside a bubble.
type rig struct {
	*Relay
	pub  *fakePublisher
	stop context.CancelFunc
	err  chan error
}

func start(opt Options, obs Observer, pub *fakePublisher, open func() (Source, error)) *rig {
	r := New(opt, obs, []Feed{{Name: "orders", Open: open, Router: keyRouter{}}})
	pub.result = r.Result
	ctx, cancel := context.WithCancel(context.Background())
	g := &rig{Relay: r, pub: pub, stop: cancel, err: make(chan error, 1)}
	go func() { g.err <- r.Run(ctx, pub) }()
	return g
}

func always(s Source) func() (Source, error) { return func() (Source, error) { return s, nil } }

func TestConfirmNeverPassesAnEventWithoutAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newFakeSource(
			span{keys: []string{"a", "b"}, done: false},
			span{keys: []string{"c"}, done: true, end: 100},
			span{done: true, end: 150}, // a keepalive behind it
			span{keys: []string{"d"}, done: true, end: 200},
		)
		g := start(Options{}, Observer{}, &fakePublisher{}, always(src))
		synctest.Wait()
		for _, step := range []struct {
			key  string
			want event.LSN
		}{{"d", 0}, {"a", 0}, {"c", 0}, {"b", 200}} {
			if !g.pub.settle(step.key, nil) {
				t.Fatalf("event %q was not published", step.key)
			}
			synctest.Wait()
			if got := src.last(); got != step.want {
				t.Fatalf("after the acknowledgement of %q the confirmed position is %s, want %s", step.key, got, step.want)
			}
		}
		g.stop()
		if err := <-g.err; err != nil {
			t.Fatalf("clean stop returned %v", err)
		}
		if src.live != 0 {
			t.Fatalf("%d batches keep their memory after the end", src.live)
		}
		if !src.closed || !g.pub.closed {
			t.Fatal("source or publisher was not closed")
		}
	})
}

func TestIdlePlacesAreConfirmedAloneWhenNothingIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newFakeSource(span{done: true, end: 70})
		g := start(Options{}, Observer{}, &fakePublisher{}, always(src))
		synctest.Wait()
		if got := src.last(); got != 70 {
			t.Fatalf("confirmed %s, want 0/46", got)
		}
		g.stop()
		<-g.err
	})
}

func TestPoisonStopsItsSourceAndNothingPastItIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newFakeSource(
			span{keys: []string{"a"}, done: true, end: 100},
			span{keys: []string{"poison"}, done: true, end: 200},
			span{keys: []string{"b"}, done: true, end: 300},
		)
		var halted []string
		obs := Observer{Halted: func(_ string, err error) { halted = append(halted, err.Error()) }}
		pub := &fakePublisher{auto: true}
		g := start(Options{}, obs, pub, always(src))
		synctest.Wait()
		if len(halted) != 1 {
			t.Fatalf("halted %q, want one halt", halted)
		}
		if got := src.last(); got != 100 {
			t.Fatalf("confirmed %s, want 0/64", got)
		}
		if slices.Contains(pub.taken, "b") {
			t.Fatal("an event behind the poison was published")
		}
		g.stop()
		err := <-g.err
		var e *event.Error
		if !errors.As(err, &e) || e.Fault != event.FaultUnacknowledged || strings.Contains(e.What, "Kafka") ||
			!strings.Contains(err.Error(), "at or behind what halted their source: source ") {
			t.Fatalf("Run returned %v, want the fault of unacknowledged events, and that the source had halted", err)
		}
	})
}

func TestExitOnHaltReturnsTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &event.Error{Class: event.Halt, Fault: event.FaultGap, What: "slot lost"}
		src := newFakeSource(span{keys: []string{"a"}, done: true, end: 100})
		src.err = lost
		g := start(Options{ExitOnHalt: true}, Observer{}, &fakePublisher{auto: true}, always(src))
		if err := <-g.err; !errors.Is(err, lost) {
			t.Fatalf("Run returned %v, want the halt", err)
		}
		if got := src.last(); got != 100 {
			t.Fatalf("what was acknowledged before the halt is confirmed up to %s, want 0/64", got)
		}
	})
}

func TestStopWithSilentBrokerEndsWithinTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newFakeSource(span{keys: []string{"a", "b"}, done: true, end: 100})
		g := start(Options{Grace: 7 * time.Second}, Observer{}, &fakePublisher{}, always(src))
		synctest.Wait()
		began := time.Now()
		g.stop()
		err := <-g.err
		if took := time.Since(began); took < 6*time.Second || took > 8*time.Second {
			t.Fatalf("the stop took %s with a grace of 7 s", took)
		}
		var e *event.Error
		if !errors.As(err, &e) || e.Fault != event.FaultUnacknowledged || e.What != "stopped with 2 events unacknowledged by Kafka" {
			t.Fatalf("Run returned %v, want a fault of unacknowledged events", err)
		}
		if got := src.last(); got != 0 {
			t.Fatalf("confirmed %s although nothing was acknowledged", got)
		}
		if src.live != 0 {
			t.Fatalf("%d batches keep their memory after the end", src.live)
		}
	})
}

func TestRetryErrorOpensTheSourceAnewAfterItsResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newFakeSource(span{keys: []string{"a"}, done: true, end: 100}, span{keys: []string{"b"}, done: false})
		first.err = &event.Error{Class: event.Retry, What: "failover"}
		second := newFakeSource(span{keys: []string{"b", "c"}, done: true, end: 50})
		sources := []*fakeSource{first, second}
		opens := 0
		pub := &fakePublisher{}
		g := start(Options{}, Observer{}, pub, func() (Source, error) {
			opens++
			return sources[opens-1], nil
		})
		synctest.Wait()
		if opens != 1 {
			t.Fatalf("opened %d times while results are out, want 1", opens)
		}
		pub.settle("b", nil)
		pub.settle("a", nil)
		time.Sleep(2 * time.Second) // of the bubble: the pause before the new beginning
		synctest.Wait()
		if opens != 2 || !first.closed {
			t.Fatalf("opened %d times, first closed %v; want a second source", opens, first.closed)
		}
		if got := first.last(); got != 100 {
			t.Fatalf("the first source was confirmed up to %s, want 0/64", got)
		}
		pub.settle("b", nil)
		pub.settle("c", nil)
		synctest.Wait()
		if got := second.last(); got != 50 {
			t.Fatalf("the second source was confirmed up to %s, want 0/32", got)
		}
		g.stop()
		if err := <-g.err; err != nil {
			t.Fatal(err)
		}
	})
}

func TestFullWindowWaitsForTheCommitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans []span
		for i := range 40 {
			spans = append(spans, span{keys: []string{"k"}, done: true, end: event.LSN(i + 1)})
		}
		src := newFakeSource(spans...)
		pub := &fakePublisher{}
		g := start(Options{Window: 4}, Observer{}, pub, always(src))
		synctest.Wait()
		if n := len(pub.taken); n != 4 {
			t.Fatalf("%d transactions under way in a window of 4", n)
		}
		for range 40 {
			if !pub.settle("k", nil) {
				t.Fatal("no event under way although the window has room")
			}
			synctest.Wait()
		}
		if got := src.last(); got != 40 {
			t.Fatalf("confirmed %s, want 0/28", got)
		}
		g.stop()
		<-g.err
	})
}

func TestWaitingFeederCountsAsAlive(t *testing.T) {
	for name, spans := range map[string][]span{
		"for its source": nil,
		"for the broker": {{keys: []string{"a"}, done: true, end: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var last time.Time
				obs := Observer{FeederBeat: func(string) { last = time.Now() }}
				pub := &fakePublisher{}
				g := start(Options{}, obs, pub, always(newFakeSource(spans...)))
				time.Sleep(10 * time.Minute) // of the bubble
				synctest.Wait()
				if age := time.Since(last); age > 2*time.Second {
					t.Errorf("the last beat is %s old", age)
				}
				pub.settle("a", nil)
				g.stop()
				<-g.err
			})
		})
	}
}

func TestStopInTheMiddleOfATransactionIsNotCalledClean(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newFakeSource(span{keys: []string{"a"}, done: false})
		src.torn = true // the server is gone: the commit never comes
		g := start(Options{Grace: time.Second}, Observer{}, &fakePublisher{auto: true}, always(src))
		synctest.Wait()
		g.stop()
		var e *event.Error
		if err := <-g.err; !errors.As(err, &e) || e.Fault != event.FaultUnacknowledged || e.What != "stopped with 1 transactions whose end did not come" {
			t.Fatalf("Run returned %v, want a fault of unacknowledged events", err)
		}
	})
}
