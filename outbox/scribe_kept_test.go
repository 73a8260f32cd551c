package outbox

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/walrelay/walrelay/event"
)

// keptBefore is a parking store that has events from before, as long as nobody lets them go.
type keptBefore struct {
	Parking
	kept []Parked
}

func (p *keptBefore) Held(context.Context) ([]HeldKey, error) { return nil, nil }
func (p *keptBefore) Kept(context.Context) ([]Parked, error)  { return p.kept, nil }

// An earlier process put events aside and ended before it could confirm them. What the
// log brings again of them is in the store's hands, also once the store has let it go.
func TestEventThatIsKeptWholeNeverComesFromTheLogToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &scriptedLog{batches: make(chan *event.Batch, 10)}
		at := func(ordinal uint32, row string) Parked {
			return Parked{Commit: event.AtLSN(99), Ordinal: ordinal, Row: row, Relation: "public.outbox"}
		}
		store := &keptBefore{kept: []Parked{at(1, "b"), at(2, ""), at(3, "of another log")}}
		skipped := 0
		s := NewScribe(log, []Table{&markTable{failed: map[string]string{}}}, store, NewGate(), ScribeOptions{Marks: true},
			ScribeObserver{Skipped: func(n int) { skipped += n }})
		log.batches <- transaction(50, "z")
		log.batches <- transaction(100, "a", "b", "", "d", "e")
		log.batches <- transaction(200, "b", "b")
		var got []string
		next := func() {
			b, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := len(b.Events); b.Spans[0].Events != n || !b.Spans[0].Done {
				t.Fatalf("span %+v of %d events", b.Spans[0], n)
			}
			for i := range b.Events {
				got = append(got, string(b.Events[i].Fields[event.RowID]))
			}
		}
		next()
		store.kept = nil // let go by the sweep, and forgotten
		next()
		if s.kept.events != nil {
			t.Error("what the log is past is remembered")
		}
		next()
		if !slices.Equal(got, []string{"z", "a", "d", "e", "b", "b"}) || skipped != 2 {
			t.Errorf("handed out %q, skipped %d", got, skipped)
		}
		_ = s.Close(t.Context())
	})
}
