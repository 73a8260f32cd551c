package outbox

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"

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

func (l *scriptedLog) Finish() {}

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

func (t *markTable) Traits() Traits { return Traits{States: true} }

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
