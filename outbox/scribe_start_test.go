package outbox

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
)

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

// A standby waits in the log's Next, for hours perhaps. What the active relay has marked and
// put aside until then is to be known, not what it had when the standby came.
func TestWhatIsDeliveredIsLookedAtOnceTheLogIsOurs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		end := event.LSN(100)
		r := newScribeRig(t, ScribeOptions{StartLine: func(context.Context) (event.Position, error) { return event.AtLSN(end), nil }})
		r.table.done = map[string]bool{"b": true}
		go func() {
			time.Sleep(time.Hour)
			end = 300 // the other relay went on meanwhile, and died
			r.log.batches <- transaction(200, "a", "b")
		}()
		if got := r.next(t); len(got.Events) != 1 || string(got.Events[0].Fields[event.RowID]) != "a" {
			t.Fatalf("%d events, want a alone: b was delivered by the relay before us", len(got.Events))
		}
		_ = r.Close(t.Context())
	})
}
