package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
)

func TestPositionIsConfirmedOnlyAfterItsRowsAreMarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newScribeRig(t, ScribeOptions{})
		r.log.onConfirm = func(at event.LSN) {
			if marked := r.table.all(); at >= 100 && len(marked) < 2 {
				t.Errorf("%s was confirmed with only %q marked", at, marked)
			}
		}
		r.log.batches <- transaction(100, "a", "b")
		r.log.batches <- transaction(200, "c")
		r.next(t)
		r.next(t)
		synctest.Wait()
		if marked := r.table.all(); len(marked) != 0 {
			t.Fatalf("%q were marked before Kafka acknowledged anything", marked)
		}
		r.Confirm(event.AtLSN(100))
		time.Sleep(time.Second)
		if got := r.table.all(); !slices.Equal(got, []string{"a", "b"}) || r.log.last() != 100 {
			t.Fatalf("marked %q, confirmed %s; want a b and 0/64", got, r.log.last())
		}
		r.Confirm(event.AtLSN(250)) // an idle place after the transaction at 200
		time.Sleep(time.Second)
		if got := r.table.all(); !slices.Equal(got, []string{"a", "b", "c"}) || r.log.last() != 250 {
			t.Fatalf("marked %q, confirmed %s; want a b c and 0/FA", got, r.log.last())
		}
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMarkNeverRunsAheadOfVisibility(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newScribeRig(t, ScribeOptions{})
		began := time.Now()
		r.table.mark = func(_ int, marks []Mark) (m Marked, _ error) {
			for i, k := range marks {
				if k.ID == "late" && time.Since(began) < 3*time.Second {
					m.Unseen = append(m.Unseen, i)
				} else {
					m.Pending++
				}
			}
			return m, nil
		}
		r.log.batches <- transaction(100, "a", "late", "b")
		r.next(t)
		r.Confirm(event.AtLSN(100))
		time.Sleep(2 * time.Second)
		if r.log.last() != 0 {
			t.Fatal("the position was confirmed while a row's transaction was not visible yet")
		}
		time.Sleep(2 * time.Second)
		if got := r.table.all(); !slices.Equal(got, []string{"a", "b", "late"}) || r.log.last() != 100 {
			t.Fatalf("marked %q, confirmed %s", got, r.log.last())
		}
		_ = r.Close(t.Context())
	})
}

func TestFailingDatabaseHoldsThePositionAndIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newScribeRig(t, ScribeOptions{})
		r.table.mark = func(call int, marks []Mark) (Marked, error) {
			if call <= 5 {
				return Marked{}, &event.Error{Class: event.Retry, What: "deadlock detected"}
			}
			return Marked{Pending: len(marks)}, nil
		}
		r.log.batches <- transaction(100, "a")
		r.next(t)
		r.Confirm(event.AtLSN(100))
		time.Sleep(time.Minute)
		if got := r.table.all(); !slices.Equal(got, []string{"a"}) || r.log.last() != 100 {
			t.Fatalf("marked %q, confirmed %s", got, r.log.last())
		}
		_ = r.Close(t.Context())
	})
}

func TestMarkThatCannotBeWrittenStopsTheSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newScribeRig(t, ScribeOptions{})
		denied := &event.Error{Class: event.Halt, What: "permission denied"}
		r.table.mark = func(int, []Mark) (Marked, error) { return Marked{}, denied }
		r.log.batches <- transaction(100, "a")
		r.next(t)
		r.Confirm(event.AtLSN(100))
		synctest.Wait()
		time.Sleep(time.Second)
		if _, err := r.Next(t.Context()); !errors.Is(err, denied) {
			t.Fatalf("Next = %v, want the refusal", err)
		}
		if r.log.last() != 0 {
			t.Fatal("the position was confirmed without the mark")
		}
		_ = r.Close(t.Context())
	})
}

func TestReadingStopsWhenTooManyMarksAreOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newScribeRig(t, ScribeOptions{Options: Options{MarkBacklog: 1}})
		ids := make([]string, 1000)
		for i := range ids {
			ids[i] = fmt.Sprint(i)
		}
		for i := range 10 {
			r.log.batches <- transaction(event.LSN(100+i), ids...)
		}
		for range 6 { // the bound, and the batch that goes over it
			r.next(t)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Next = %v with 6000 marks owed, want it to wait", err)
		}
		r.Confirm(event.AtLSN(105))
		time.Sleep(time.Second)
		r.next(t)
		_ = r.Close(t.Context())
	})
}

func TestCloseMarksWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newScribeRig(t, ScribeOptions{})
		for i := range 20 {
			r.log.batches <- transaction(event.LSN(100+i), fmt.Sprint(i))
			r.next(t)
		}
		r.Confirm(event.AtLSN(118))
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.table.all(); len(got) != 19 || r.log.last() != 118 {
			t.Fatalf("%d rows marked and %s confirmed at the end, want 19 and 0/76", len(got), r.log.last())
		}
	})
}

func TestWaitPassedNudgesAnIdleLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newScribeRig(t, ScribeOptions{})
		done := make(chan error, 1)
		go func() { done <- r.WaitPassed(t.Context(), event.AtLSN(500)) }()
		time.Sleep(time.Second)
		r.log.mu.Lock()
		nudged := r.log.nudged
		r.log.mu.Unlock()
		if nudged == 0 {
			t.Fatal("the server was not asked where it is")
		}
		r.Confirm(event.AtLSN(500))
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		_ = r.Close(t.Context())
	})
}

// forgetful is a log that remembers a position later than it is told.
type forgetful struct {
	*scriptedLog
	remembered atomic.Bool
}

func (l *forgetful) Remembered(event.Position) bool { return l.remembered.Load() }

// Otherwise a crash would have the log bring again what the sweep deleted.
func TestSweepWaitsUntilTheLogRemembersWhereItIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &forgetful{scriptedLog: &scriptedLog{batches: make(chan *event.Batch)}}
		s := NewScribe(log, nil, nil, NewGate(), ScribeOptions{}, ScribeObserver{})
		s.Confirm(event.AtLSN(500))
		done := make(chan error, 1)
		go func() { done <- s.WaitPassed(t.Context(), event.AtLSN(500)) }()
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("it waited no longer than for the log to be told: %v", err)
		default:
		}
		log.remembered.Store(true)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		_ = s.Close(t.Context())
	})
}
