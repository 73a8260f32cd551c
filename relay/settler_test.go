package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
)

// rowSource hands out rows one by one, each a span of its own, and takes their
// results; then it ends with err, or waits for Finish.
type rowSource struct {
	*fakeSource
	handles func(error) bool

	mu      sync.Mutex
	results []string
}

func newRowSource(err error, keys ...string) *rowSource {
	s := &rowSource{fakeSource: newFakeSource(), handles: func(error) bool { return true }}
	for i, k := range keys {
		s.spans = append(s.spans, span{keys: []string{k}, done: true, end: event.LSN(i + 1)})
	}
	s.err = err
	return s
}

func (s *rowSource) Settle(n uint64, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, fmt.Sprintf("%d:%v", n, err))
	return err == nil || s.handles(err)
}

func (s *rowSource) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.results))
}

func TestRowsAreSettledOneByOneAndAReturnedOneStopsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newRowSource(nil, "a", "b", "c")
		g := start(Options{}, Observer{}, &fakePublisher{}, always(src))
		synctest.Wait()
		back := &event.Error{Class: event.Retry, What: "no topic"}
		g.pub.settle("b", back)
		g.pub.settle("c", nil)
		g.pub.settle("a", nil)
		synctest.Wait()
		if want := []string{"0:<nil>", "1:no topic", "2:<nil>"}; !slices.Equal(src.got(), want) {
			t.Fatalf("results %q, want %q", src.got(), want)
		}
		if n := g.Unsettled(0); n != 0 {
			t.Fatalf("%d events count as unsettled although the source dealt with them", n)
		}
		g.stop()
		if err := <-g.err; err != nil {
			t.Fatalf("clean stop returned %v", err)
		}
	})
}

func TestResultThatTheSourceDoesNotDealWithHaltsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newRowSource(nil, "a", "b")
		src.handles = func(error) bool { return false }
		halts := make(chan error, 1)
		g := start(Options{}, Observer{Halted: func(_ string, err error) { halts <- err }}, &fakePublisher{}, always(src))
		synctest.Wait()
		stopped := &event.Error{Class: event.Halt, What: "poison, and stop is the policy"}
		g.pub.settle("a", stopped)
		if halted := <-halts; !errors.Is(halted, stopped) {
			t.Fatalf("halted with %v, want the result's error", halted)
		}
		g.pub.settle("b", nil)
		g.stop()
		if err := <-g.err; event.ClassOf(err) != event.Halt {
			t.Fatalf("the stop returned %v, want that an event is unacknowledged", err)
		}
	})
}

func TestRowsGivenBackByTheEndAreNotCalledAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newRowSource(nil, "a")
		g := start(Options{Grace: time.Second}, Observer{}, &fakePublisher{}, always(src))
		synctest.Wait()
		g.stop()
		g.pub.settle("a", &event.Error{Class: event.Retry, Fault: event.FaultUnacknowledged, What: "closed"})
		var e *event.Error
		if err := <-g.err; !errors.As(err, &e) || e.Fault != event.FaultUnacknowledged {
			t.Fatalf("the stop returned %v, want FaultUnacknowledged", err)
		}
	})
}

func TestSuccessorIsOpenedOnceEverythingIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRowSource(fmt.Errorf("caught up: %w", event.ErrTurn), "a", "b")
		second := newFakeSource(span{keys: []string{"c"}, done: true, end: 500})
		var opened, restarts atomic.Int32
		open := func() (Source, error) {
			if opened.Add(1) == 1 {
				return first, nil
			}
			return second, nil
		}
		obs := Observer{Restarted: func(string, error) { restarts.Add(1) }}
		g := start(Options{}, obs, &fakePublisher{}, open)
		time.Sleep(time.Minute)
		if opened.Load() != 1 {
			t.Fatal("the successor was opened while events of the first source were under way")
		}
		g.pub.settle("b", nil)
		g.pub.settle("a", nil)
		time.Sleep(time.Second)
		first.fakeSource.mu.Lock()
		closed := first.closed
		first.fakeSource.mu.Unlock()
		if opened.Load() != 2 || restarts.Load() != 0 || !closed {
			t.Fatalf("opened %d, restarts %d, first closed %v; want 2, 0, true", opened.Load(), restarts.Load(), closed)
		}
		if !g.pub.settle("c", nil) {
			t.Fatal("the successor's event was not published")
		}
		synctest.Wait()
		if second.last() != 500 || len(first.got()) != 2 {
			t.Fatalf("confirmed %s, results of the first %q", second.last(), first.got())
		}
		g.stop()
		if err := <-g.err; err != nil {
			t.Fatal(err)
		}
	})
}

// preparedSource has one event that was routed before.
type preparedSource struct{ *fakeSource }

func (s *preparedSource) Next(ctx context.Context) (*event.Batch, error) {
	b, err := s.fakeSource.Next(ctx)
	if err == nil {
		b.Events[0].Prepared = &event.Record{Topic: "elsewhere", Key: []byte("as it was")}
	}
	return b, err
}

func TestPreparedRecordIsPublishedAsItStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &preparedSource{newFakeSource(span{keys: []string{"poison"}, done: true, end: 1})}
		g := start(Options{}, Observer{}, &fakePublisher{auto: true}, always(src))
		synctest.Wait()
		if !slices.Equal(g.pub.taken, []string{"as it was"}) {
			t.Fatalf("published %q, want the prepared record without asking the router", g.pub.taken)
		}
		g.stop()
		if err := <-g.err; err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
}
