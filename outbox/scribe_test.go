package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
)

// scriptedLog hands out batches and notes what it was told.
type scriptedLog struct {
	mu        sync.Mutex
	batches   chan *event.Batch
	confirmed []event.LSN
	nudged    int
	onConfirm func(event.LSN)
}

func (l *scriptedLog) Next(ctx context.Context) (*event.Batch, error) {
	select {
	case b, ok := <-l.batches:
		if !ok {
			return nil, io.EOF
		}
		return b, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
func (l *scriptedLog) Finish()                     {}
func (l *scriptedLog) Close(context.Context) error { return nil }
func (l *scriptedLog) Nudge() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nudged++
}

func (l *scriptedLog) Confirm(p event.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.confirmed = append(l.confirmed, p.LSN)
	if l.onConfirm != nil {
		l.onConfirm(p.LSN)
	}
}

func (l *scriptedLog) last() event.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.confirmed) == 0 {
		return 0
	}
	return l.confirmed[len(l.confirmed)-1]
}

// markTable answers Mark by script; everything else is not asked of it.
type markTable struct {
	Table
	mu     sync.Mutex
	marked []string
	failed map[string]string
	mark   func(call int, marks []Mark) (Marked, error) // nil: all are pending
	calls  int
	done   map[string]bool // LookUp
	asked  int
}

func (t *markTable) Relation() string { return "public.outbox" }
func (t *markTable) Traits() Traits   { return Traits{States: true} }

func (t *markTable) Mark(_ context.Context, marks []Mark) (Marked, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	m := Marked{Pending: len(marks)}
	if t.mark != nil {
		var err error
		if m, err = t.mark(t.calls, marks); err != nil {
			return m, err
		}
	}
	for i, k := range marks {
		if !slices.Contains(m.Unseen, i) {
			t.marked = append(t.marked, k.ID)
			if k.Error != "" {
				t.failed[k.ID] = k.Error
			}
		}
	}
	return m, nil
}

func (t *markTable) LookUp(_ context.Context, ids []string) (map[string]bool, error) {
	t.asked += len(ids)
	found := map[string]bool{}
	for _, id := range ids {
		if t.done[id] {
			found[id] = true
		}
	}
	return found, nil
}

func (t *markTable) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.marked)
}

// transaction is a batch of one transaction that ends at end.
func transaction(end event.LSN, ids ...string) *event.Batch {
	b := &event.Batch{Memory: event.NewMemory(nil), Spans: []event.Span{{Events: len(ids), Done: true, End: event.AtLSN(end)}}}
	for i, id := range ids {
		ev := event.Event{Relation: "public.outbox", Commit: event.AtLSN(end - 1), Ordinal: uint32(i), Xid: uint32(end)}
		if id != "" {
			ev.Fields[event.RowID] = []byte(id)
		} else {
			ev.Relation = "outbox"
		}
		b.Events = append(b.Events, ev)
	}
	return b
}

type scribeRig struct {
	*Scribe
	log   *scriptedLog
	table *markTable
	gate  *Gate
}

func newScribeRig(t *testing.T, opt ScribeOptions) *scribeRig {
	r := &scribeRig{
		log: &scriptedLog{batches: make(chan *event.Batch, 1000)}, table: &markTable{failed: map[string]string{}}, gate: NewGate(),
	}
	opt.Marks = true
	r.Scribe = NewScribe(r.log, []Table{r.table}, nil, r.gate, opt, ScribeObserver{})
	return r
}

func (r *scribeRig) next(t *testing.T) *event.Batch {
	t.Helper()
	b, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

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

func TestEventsDeliveredByAnEarlierProcessAreSkippedBelowTheStartLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newScribeRig(t, ScribeOptions{StartLine: func(context.Context) (event.Position, error) { return event.AtLSN(150), nil }})
		r.table.done = map[string]bool{"b": true, "c": true, "e": true}
		r.log.batches <- transaction(100, "a", "b", "c", "", "d")
		r.log.batches <- transaction(200, "e") // above the line: not looked up
		first := r.next(t)
		var got []string
		for i := range first.Events {
			got = append(got, string(first.Events[i].Fields[event.RowID]))
		}
		if !slices.Equal(got, []string{"a", "", "d"}) || first.Spans[0].Events != 3 || !first.Spans[0].Done {
			t.Fatalf("events %q, span %+v; want a, the message and d", got, first.Spans[0])
		}
		if second := r.next(t); len(second.Events) != 1 {
			t.Fatal("an event above the start line was skipped")
		}
		if r.table.asked != 4 {
			t.Fatalf("%d ids were looked up, want 4", r.table.asked)
		}
		r.Confirm(event.AtLSN(200))
		time.Sleep(time.Second)
		if got := r.table.all(); !slices.Equal(got, []string{"a", "d", "e"}) {
			t.Fatalf("marked %q, want those that were published", got)
		}
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

func TestBookFindsEachNoteAmongMany(t *testing.T) {
	t.Parallel()
	var b book
	for i := range 100 {
		b.write(transaction(event.LSN(10*i+10), "x", "y", "z"), func(*event.Event) int { return 0 })
	}
	b.tear(30, 10)
	for i := 10; i < 100; i++ {
		for ord := range 3 {
			n := b.find(event.AtLSN(event.LSN(10*i+9)), uint32(ord))
			if n == nil || n.ordinal != uint32(ord) || n.commit != event.AtLSN(event.LSN(10*i+9)) {
				t.Fatalf("note %d/%d not found: %+v", i, ord, n)
			}
		}
	}
	if b.find(event.AtLSN(9), 0) != nil || b.find(event.AtLSN(109), 3) != nil {
		t.Fatal("a note was found that is not there")
	}
	if notes, lines, end := b.ripe(event.AtLSN(125), 1000); notes != 6 || lines != 2 || end != event.AtLSN(120) {
		t.Fatalf("ripe = %d notes, %d lines, end %s; want 6, 2, 0/78", notes, lines, end)
	}
	if notes, _, _ := b.ripe(event.AtLSN(1000), 10); notes != 9 {
		t.Fatalf("ripe took %d notes of transactions of 3 with a limit of 10, want 9", notes)
	}
}

func TestSomebodyElseWhoPublishesTheSameRowsIsSaid(t *testing.T) {
	t.Parallel()
	var f foreign
	now := time.Unix(0, 0)
	tb := &markTable{}
	if _, changed := f.watch(tb, Marked{Pending: 5, Absent: 3}, now); changed {
		t.Fatal("rows of our own, or deleted by their writer, were taken for a foreign poller's")
	}
	for range 2 {
		if c, changed := f.watch(tb, Marked{Pending: 5, Foreign: 1, Settled: 1}, now); !changed || c.Remedy == "" {
			t.Fatalf("not said: %+v", c)
		}
	}
	if f.rows != 4 {
		t.Fatalf("%d rows counted, want 4", f.rows)
	}
	if c, changed := f.watch(tb, Marked{Pending: 1}, now.Add(6*time.Minute)); !changed || c.What != "" {
		t.Fatal("the warning stays although nobody was seen for minutes")
	}
}
