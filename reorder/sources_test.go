package reorder

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/hlc"
)

func TestAStalledSourceFreezesTheWatermarkUntilItIsDetached(t *testing.T) {
	t.Parallel()
	b := New[string](2, 1<<20, 0)
	b.Attach(0)
	b.Attach(1)
	b.Advance(1, 50) // and then nothing more
	for s := hlc.Stamp(10); s <= 100; s += 10 {
		b.Add(stamped(0, s, s.String()))
		b.Advance(0, s)
	}
	if n := len(drain(b)); n != 4 {
		t.Fatalf("%d items went out below 50, want 4", n)
	}
	if f := b.Figures(); f.Watermark != 50 || b.Gated(0) || !b.Gated(1) {
		t.Fatalf("watermark %d, gated %t %t", f.Watermark, b.Gated(0), b.Gated(1))
	}
	b.Detach(1)
	if n := len(drain(b)); n != 5 {
		t.Fatalf("%d items went out when the stalled one was detached, want 5", n)
	}
	// What it missed is late on its return; then it counts again.
	for _, s := range []hlc.Stamp{60, 95} {
		if found := b.Add(stamped(1, s, "missed")); found.Has(Late) != (s < 90) {
			t.Errorf("%d was found %s", s, found)
		}
	}
	b.Attach(1)
	if f := b.Figures(); f.Watermark != 50 || f.Late != 1 || b.Source(1).Late != 1 || b.Source(0).Late != 0 {
		t.Errorf("after its return: %+v", f)
	}
	if got := drain(b); len(got) != 1 || got[0].Stamp != 60 {
		t.Errorf("went out: %v; the late one must not wait, the other one must", got)
	}
}

func TestTheMinimumIsThatOfTheAttachedSources(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "sources")
		b := New[int](n, 0, 0)
		attached, w := make([]bool, n), make([]hlc.Stamp, n)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "source")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				attached[i] = true
				b.Attach(i)
			case 1:
				attached[i] = false
				b.Detach(i)
			default:
				v := hlc.Stamp(rapid.Uint64Range(0, 20).Draw(t, "w"))
				w[i] = max(w[i], v)
				b.Advance(i, v)
			}
			var low hlc.Stamp
			none, gated := true, 0
			for j := range n {
				if attached[j] && (none || w[j] < low) {
					low, none = w[j], false
				}
			}
			for j := range n {
				if b.Gated(j) {
					gated++
					if !attached[j] || w[j] != low {
						t.Fatalf("source %d is gated at %d, the minimum is %d", j, w[j], low)
					}
				}
				if s := b.Source(j); s.Watermark != w[j] || s.Attached != attached[j] {
					t.Fatalf("source %d: %+v", j, s)
				}
			}
			if none != (gated == 0) || gated > 1 || b.Figures().Watermark != low {
				t.Fatalf("%d sources are gated, watermark %d, want %d", gated, b.Figures().Watermark, low)
			}
		}
	})
}

func TestASourceHasRoomWithinItsOwnBudgetAndForOneGiant(t *testing.T) {
	t.Parallel()
	b := New[string](2, 100, 0)
	add := func(source int, bytes int64) {
		it := stamped(source, 5, "")
		it.Bytes = bytes
		b.Add(it)
	}
	if !b.Room(0, 1000) {
		t.Error("a giant finds no room in an empty share")
	}
	add(0, 60)
	if !b.Room(0, 40) || b.Room(0, 41) || !b.Room(1, 100) {
		t.Error("room is not what the budget leaves")
	}
	add(1, 60)
	if !b.Room(0, 40) {
		t.Error("another source's items take room")
	}
	b.Pop()
	if !b.Room(0, 100) {
		t.Error("what went out still takes room")
	}
}

// feed is a source of the relay: events in log order, and the rule by which it reads.
type feed struct {
	stamps []hlc.Stamp
	next   int
}

// drive reads two sources by turns as the relay does, and answers how many events came
// out, the most bytes that one source held, and whether all came to a stop before the end.
func drive(feeds []feed, budget int64, wait func(*Buffer[int], int) bool, relieve bool) (out []Item[int], most int64, stuck bool) {
	b := New[int](len(feeds), budget, 0)
	for i := range feeds {
		b.Attach(i)
	}
	for {
		moved, done := false, true
		for i := range feeds {
			f := &feeds[i]
			if f.next == len(f.stamps) {
				if b.Source(i).Attached {
					b.Detach(i) // its log has ended
					moved = true
				}
				continue
			}
			done = false
			if !b.Room(i, 10) && wait(b, i) {
				continue
			}
			for relieve && !b.Room(i, 10) {
				it, ok := b.Relieve(i)
				if !ok {
					break
				}
				out = append(out, it)
			}
			b.Add(Item[int]{Source: i, Stamp: f.stamps[f.next], Stamped: true, CommitMicros: 1, Bytes: 10, Value: f.next})
			f.next++
			moved = true
			most = max(most, b.Source(i).Bytes)
			// Nothing that comes is below the least of what is left.
			if f.next < len(f.stamps) {
				b.Advance(i, slices.Min(f.stamps[f.next:]))
			}
		}
		out = append(out, drain(b)...)
		if done {
			return append(out, drain(b)...), most, false
		}
		if !moved {
			return out, most, true
		}
	}
}

func feedsOf(t *rapid.T) (feeds []feed, total int) {
	for range 2 {
		var f feed
		base := rapid.Uint64Range(0, 500).Draw(t, "base")
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			base += rapid.Uint64Range(0, 5).Draw(t, "gap")
			f.stamps = append(f.stamps, hlc.Stamp(base+rapid.Uint64Range(0, 40).Draw(t, "ahead")))
		}
		total += len(f.stamps)
		feeds = append(feeds, f)
	}
	return feeds, total
}

func gatedMayRead(b *Buffer[int], source int) bool { return !b.Gated(source) }

func TestTwoSourcesWithTinyBudgetsNeverStopEachOther(t *testing.T) {
	t.Parallel()
	stuckTwins := 0
	rapid.Check(t, func(t *rapid.T) {
		feeds, total := feedsOf(t)
		twins := []feed{{stamps: feeds[0].stamps}, {stamps: feeds[1].stamps}}
		out, _, stuck := drive(feeds, 30, gatedMayRead, false)
		if stuck || len(out) != total {
			t.Fatalf("%d of %d events went out, stuck: %t", len(out), total, stuck)
		}
		if !slices.IsSortedFunc(out, func(a, b Item[int]) int { return int(a.Stamp) - int(b.Stamp) }) {
			t.Fatal("the budget cost the order")
		}
		if _, _, stuck := drive(twins, 30, func(*Buffer[int], int) bool { return true }, false); stuck {
			stuckTwins++
		}
	})
	if stuckTwins == 0 {
		t.Error("not even sources that always wait stopped each other: the test shows nothing")
	}
}

func TestRelievingKeepsTheBudgetAndCountsWhatItCosts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		feeds, total := feedsOf(t)
		out, most, stuck := drive(feeds, 30, gatedMayRead, true)
		if stuck || len(out) != total || most > 30 {
			t.Fatalf("%d of %d events went out, a source held %d bytes of 30, stuck: %t", len(out), total, most, stuck)
		}
		early := 0
		var highest hlc.Stamp
		for _, it := range out {
			if it.Found.Has(Early) {
				early++
			}
			if it.Stamp < highest && !it.Found.Has(Late) {
				t.Fatalf("%d after %d is not called late", it.Stamp, highest)
			}
			highest = max(highest, it.Stamp)
			if it.Found.Has(Late) && early == 0 {
				t.Fatal("late before anything went early")
			}
		}
	})
}
