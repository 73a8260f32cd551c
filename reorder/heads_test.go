package reorder

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/hlc"
)

// merger is the slow twin of raising: a queue for each source and key, and the least of
// their heads goes.
type merger struct {
	queues    []*queue
	watermark hlc.Stamp
	// out is what went out, in order.
	out []merged
}

type queue struct {
	source int
	key    uint64
	items  []merged
	since  int // how much had gone out when it began
}

type merged struct {
	own       hlc.Stamp
	source    int
	key       uint64
	arrival   int
	conflicts bool
}

func (m *merger) add(e merged) {
	for _, q := range m.queues {
		if q.source == e.source && q.key == e.key && len(q.items) > 0 && e.key != 0 {
			q.items = append(q.items, e)
			return
		}
	}
	m.queues = append(m.queues, &queue{e.source, e.key, []merged{e}, len(m.out)})
}

func (m *merger) pop() (merged, bool) {
	var least *queue
	for _, q := range m.queues {
		if len(q.items) == 0 {
			continue
		}
		if least == nil {
			least = q
			continue
		}
		a, b := q.items[0], least.items[0]
		if a.own < b.own || a.own == b.own && (a.source < b.source || a.source == b.source && a.arrival < b.arrival) {
			least = q
		}
	}
	if least == nil || least.items[0].own >= m.watermark {
		return merged{}, false
	}
	e := least.items[0]
	least.items = least.items[1:]
	for _, f := range m.out[least.since:] {
		if f.key == e.key && e.key != 0 && f.source != e.source && f.own > e.own {
			e.conflicts = true
		}
	}
	m.out = append(m.out, e)
	return e, true
}

// Items of few keys and few stamps come from two or three sources, in any order of
// stamps; what may go is taken after each advance.
func TestRaisingIsTheMergeByHeads(t *testing.T) {
	t.Parallel()
	reached := map[Found]int{}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 3).Draw(t, "sources")
		b := New[int](n, 1<<20, 0)
		for i := range n {
			b.Attach(i)
		}
		var slow merger
		arrival := 0
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			for range rapid.IntRange(0, 12).Draw(t, "items") {
				arrival++
				e := merged{
					own:     hlc.Stamp(rapid.Uint64Range(1, 60).Draw(t, "stamp")),
					source:  rapid.IntRange(0, n-1).Draw(t, "source"),
					key:     rapid.Uint64Range(0, 3).Draw(t, "key"),
					arrival: arrival,
				}
				slow.add(e)
				b.Add(Item[int]{Source: e.source, Stamp: e.own, Stamped: true, CommitMicros: 1, Key: e.key, WithinKey: true, Value: arrival})
			}
			slow.watermark = max(slow.watermark, hlc.Stamp(rapid.Uint64Range(1, 70).Draw(t, "watermark")))
			for i := range n {
				b.Advance(i, slow.watermark)
			}
			for {
				want, wantOK := slow.pop()
				got, ok := b.Pop()
				if ok != wantOK || got.Value != want.arrival {
					t.Fatalf("popped %+v %t, want %+v %t", got, ok, want, wantOK)
				}
				if !ok {
					break
				}
				if got.Found.Has(Conflict) != want.conflicts {
					t.Fatalf("%+v: conflict, want %t", got, want.conflicts)
				}
				if got.Found.Has(Conflict) && !got.Found.Has(Raised) {
					t.Fatalf("%+v conflicts and was not raised", got)
				}
				reached[got.Found]++
			}
		}
	})
	for _, f := range []Found{0, Late, Raised, Raised | Conflict} {
		if reached[f] == 0 {
			t.Errorf("no item was %s: the test does not reach it", f)
		}
	}
}

func TestMergeByHeadsNeverReordersAKeyWithinASourceWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := New[int](2, 1<<20, 0)
		b.Attach(0)
		b.Attach(1)
		type line struct {
			source int
			key    uint64
		}
		last := map[line]int{}
		held := 0
		see := func(it Item[int], ok bool) bool {
			if !ok {
				return false
			}
			held--
			l := line{it.Source, it.Key}
			if it.Value <= last[l] {
				t.Fatalf("item %d of source %d and key %d went out after %d", it.Value, it.Source, it.Key, last[l])
			}
			last[l] = it.Value
			return true
		}
		for i := range rapid.IntRange(1, 150).Draw(t, "steps") {
			source := rapid.IntRange(0, 1).Draw(t, "source")
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			default:
				it := Item[int]{
					Source: source, Stamp: hlc.Stamp(rapid.Uint64Range(1, 1000).Draw(t, "stamp")), Stamped: rapid.IntRange(0, 5).Draw(t, "null") > 0,
					CommitMicros: 1, Key: rapid.Uint64Range(1, 3).Draw(t, "key"), WithinKey: true, Value: i + 1,
				}
				b.Add(it)
				held++
			case 5:
				b.Advance(source, hlc.Stamp(rapid.Uint64Range(1, 1000).Draw(t, "watermark")))
			case 6:
				see(b.Pop())
			case 7:
				see(b.Relieve(source))
			case 8:
				b.Detach(source)
			case 9:
				b.Attach(source)
			}
		}
		b.Detach(0)
		b.Detach(1)
		for see(b.Pop()) {
		}
		if held != 0 || b.Figures().Items != 0 {
			t.Fatalf("%d items did not come out", held)
		}
		if b.heads.used != 0 {
			t.Fatalf("%d keys are remembered of an empty buffer", b.heads.used)
		}
	})
}

// Nobody can satisfy both orders here; it is counted (see heads.go).
func TestAnEffectThatOvertakesItsCauseAcrossSourcesIsCountedAsAConflict(t *testing.T) {
	t.Parallel()
	const key = 7
	for _, c := range []struct {
		name      string
		f         hlc.Stamp
		key       uint64
		source    int
		order     []string
		conflicts uint64
	}{
		{"between", 60, key, 1, []string{"f", "e1", "e2"}, 1},
		{"below both", 40, key, 1, []string{"f", "e1", "e2"}, 0},
		{"above both", 110, key, 1, []string{"e1", "e2", "f"}, 0},
		{"of another key", 60, key + 1, 1, []string{"f", "e1", "e2"}, 0},
		{"of the same source and another key", 60, key + 1, 0, []string{"f", "e1", "e2"}, 0},
	} {
		b := New[string](2, 1<<20, 0)
		b.Attach(0)
		b.Attach(1)
		add := func(source int, s hlc.Stamp, key uint64, name string) {
			it := stamped(source, s, name)
			it.Key, it.WithinKey = key, true
			b.Add(it)
		}
		add(0, 100, key, "e1")
		add(0, 50, key, "e2")
		add(c.source, c.f, c.key, "f")
		b.Advance(0, 200)
		b.Advance(1, 200)
		if got := values(drain(b)); !slices.Equal(got, c.order) {
			t.Errorf("%s: order %v, want %v", c.name, got, c.order)
		}
		if f := b.Figures(); f.Conflicts != c.conflicts || f.Raised != 1 {
			t.Errorf("%s: %d conflicts, want %d; raised %d", c.name, f.Conflicts, c.conflicts, f.Raised)
		}
	}
}

// What follows an item that went out early has nothing left to wait for.
func TestWhatIsRaisedBehindAnEarlyItemGoesWithIt(t *testing.T) {
	t.Parallel()
	b := New[string](1, 1<<20, 0)
	b.Attach(0)
	for _, c := range []struct {
		stamp hlc.Stamp
		key   uint64
		name  string
	}{{100, 7, "e1"}, {100, 8, "other"}, {50, 7, "e2"}, {120, 7, "e3"}} {
		it := stamped(0, c.stamp, c.name)
		it.Key, it.WithinKey = c.key, true
		b.Add(it)
	}
	b.Advance(0, 80)
	if out := drain(b); out != nil {
		t.Fatalf("went out below 80: %v", values(out))
	}
	if it, ok := b.Relieve(0); !ok || it.Value != "e1" || it.Found != Early {
		t.Fatalf("relieved of %v", it)
	}
	if got := values(drain(b)); !slices.Equal(got, []string{"e2"}) {
		t.Errorf("behind e1 went out %v, want e2 alone", got)
	}
}

func TestWithoutWithinKeyTheStampAloneDecides(t *testing.T) {
	t.Parallel()
	b := New[string](1, 1<<20, 0)
	for _, within := range []bool{true, false} {
		b.Attach(0)
		for _, s := range []hlc.Stamp{100, 50} {
			it := stamped(0, s, s.String())
			it.Key, it.WithinKey = 7, within
			b.Add(it)
		}
		b.Detach(0)
		out := drain(b)
		if ordered := out[0].Stamp < out[1].Stamp; ordered == within {
			t.Errorf("within_key commit: %t, and went out in the order of stamps: %t", within, ordered)
		}
	}
}

func TestKeysAreFoundWhateverTheirHashesHaveInCommon(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newHeads(1)
		held := map[uint64][]uint32{}
		for i := range rapid.IntRange(1, 400).Draw(t, "steps") {
			// The low bits collide, around the end of the table too.
			key := rapid.Uint64Range(1, 60).Draw(t, "high")<<8 | rapid.Uint64Range(60, 66).Draw(t, "low")
			if rapid.IntRange(0, 2).Draw(t, "join") > 0 {
				_, _, first := h.join(key, 0, 1, uint64(i))
				held[key] = append(held[key], first)
			} else if n := len(held[key]); n > 0 {
				h.leave(key, held[key][0], 0, 1)
				if held[key] = held[key][1:]; n == 1 {
					delete(held, key)
				}
			}
			if h.used != len(held) {
				t.Fatalf("%d keys in the table, want %d", h.used, len(held))
			}
			tails := map[uint32]bool{}
			for key, firsts := range held {
				e := h.find(key)
				if e.key != key || e.held != uint32(len(firsts)) || e.first != firsts[0] || tails[e.first] {
					t.Fatalf("key %d: found %+v, want %d held at %d", key, *e, len(firsts), firsts[0])
				}
				tails[e.first] = true
			}
		}
	})
}
