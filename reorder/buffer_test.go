package reorder

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/hlc"
)

// sorter is the slow twin: a slice that is searched for its least item.
type sorter struct {
	items     []sorted
	watermark []hlc.Stamp
	attached  []bool
	released  hlc.Stamp
	arrival   int
}

type sorted struct {
	stamp   hlc.Stamp
	source  int
	arrival int
	late    bool
}

func (s *sorter) add(source int, stamp hlc.Stamp) bool {
	s.arrival++
	late := stamp < s.released
	s.items = append(s.items, sorted{stamp, source, s.arrival, late})
	return late
}

func (s *sorter) limit() hlc.Stamp {
	low := hlc.Stamp(1 << 63)
	for i, w := range s.watermark {
		if s.attached[i] {
			low = min(low, w)
		}
	}
	return low
}

// least is the next item, and whether it may go.
func (s *sorter) least() (first sorted, due bool) {
	if len(s.items) == 0 {
		return first, false
	}
	slices.SortFunc(s.items, func(a, b sorted) int {
		return cmp.Or(cmp.Compare(a.stamp, b.stamp), cmp.Compare(a.source, b.source), cmp.Compare(a.arrival, b.arrival))
	})
	first = s.items[0]
	return first, first.stamp < s.limit() || first.late
}

func (s *sorter) pop(force bool) (sorted, bool) {
	first, due := s.least()
	if len(s.items) == 0 || !due && !force {
		return sorted{}, false
	}
	s.items = s.items[1:]
	s.released = max(s.released, first.stamp)
	return first, true
}

func TestBufferAgreesWithSortingEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "sources")
		b := New[int](n, 1<<20, 0)
		slow := sorter{watermark: make([]hlc.Stamp, n), attached: make([]bool, n)}
		for i := range n {
			b.Attach(i)
			slow.attached[i] = true
		}
		var late, early uint64
		most := 0
		stamps := rapid.Uint64Range(1, 40) // few, so that many are equal
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			source := rapid.IntRange(0, n-1).Draw(t, "source")
			step := rapid.IntRange(0, 9).Draw(t, "step")
			switch {
			case step < 4:
				// Equal to the mark and from a lower source: neither order is wrong, so leave it out.
				s := hlc.Stamp(stamps.Draw(t, "stamp"))
				if s == slow.released {
					continue
				}
				wantLate := slow.add(source, s)
				found := b.Add(Item[int]{Source: source, Stamp: s, Stamped: true, CommitMicros: 1, Bytes: 10, Value: slow.arrival})
				if found.Has(Late) != wantLate {
					t.Fatalf("%s is %s, late: want %t", s, found, wantLate)
				}
				if wantLate {
					late++
				}
			case step < 6:
				w := hlc.Stamp(stamps.Draw(t, "watermark"))
				slow.watermark[source] = max(slow.watermark[source], w)
				b.Advance(source, w)
			case step < 8:
				for {
					if _, due := slow.least(); b.Due() != due {
						t.Fatalf("due is %t, want %t", b.Due(), due)
					}
					want, wantOK := slow.pop(false)
					got, ok := b.Pop()
					if ok != wantOK || ok && got.Value != want.arrival {
						t.Fatalf("popped %v %t, want %v %t", got, ok, want, wantOK)
					}
					if !ok || rapid.Bool().Draw(t, "enough") {
						break
					}
				}
			case step == 8:
				slow.attached[source] = !slow.attached[source]
				if slow.attached[source] {
					b.Attach(source)
				} else {
					b.Detach(source)
				}
			default:
				_, due := slow.least()
				want, wantOK := slow.pop(true)
				got, ok := b.Relieve(source)
				if got.Found.Has(Early) != (ok && !due) {
					t.Fatalf("%v went out as %s, and it was due: %t", got, got.Found, due)
				}
				if ok != wantOK || ok && got.Value != want.arrival {
					t.Fatalf("relieved of %v %t, want %v %t", got, ok, want, wantOK)
				}
				if got.Found.Has(Early) {
					early++
				}
			}
			f := b.Figures()
			want := Figures{Items: len(slow.items), Bytes: int64(10 * len(slow.items)), Released: slow.released}
			for _, it := range slow.items {
				if want.Oldest == 0 || it.stamp < want.Oldest {
					want.Oldest = it.stamp
				}
			}
			if slices.Contains(slow.attached, true) {
				want.Watermark = slow.limit()
			}
			want.Late, want.Early = late, early
			if most = max(most, f.Items); len(b.slots) > most {
				t.Fatalf("%d slots are kept for at most %d items", len(b.slots), most)
			}
			if f != want {
				t.Fatalf("figures %+v, want %+v", f, want)
			}
		}
	})
}

func drain[T any](b *Buffer[T]) (out []Item[T]) {
	for it, ok := b.Pop(); ok; it, ok = b.Pop() {
		out = append(out, it)
	}
	return out
}

func values[T any](items []Item[T]) (out []T) {
	for _, it := range items {
		out = append(out, it.Value)
	}
	return out
}

func stamped(source int, stamp hlc.Stamp, value string) Item[string] {
	return Item[string]{Source: source, Stamp: stamp, Stamped: true, CommitMicros: 1, Value: value}
}

func TestALateEventGoesAtOnceAndMovesNothing(t *testing.T) {
	t.Parallel()
	b := New[string](1, 1<<20, 0)
	b.Attach(0)
	b.Add(stamped(0, 100, "a"))
	b.Add(stamped(0, 300, "c"))
	b.Advance(0, 200)
	drain(b)
	// Between the released mark and the watermark nothing is out of order yet.
	if found := b.Add(stamped(0, 150, "on time")); found != 0 {
		t.Errorf("150 after 100 was found %s", found)
	}
	if found := b.Add(stamped(0, 50, "late")); found != Late {
		t.Errorf("50 after 100 was found %s", found)
	}
	out := drain(b)
	if got := values(out); !slices.Equal(got, []string{"late", "on time"}) {
		t.Fatalf("went out: %v", got)
	}
	if !out[0].Found.Has(Late) || out[0].Stamp != 50 {
		t.Errorf("the late one came out as %s with the stamp %d", out[0].Found, out[0].Stamp)
	}
	if f := b.Figures(); f.Late != 1 || f.Released != 150 || f.Items != 1 || b.Source(0).Late != 1 {
		t.Errorf("figures %+v", f)
	}
}

func TestAFutureStampBlocksNothingAndNeverRaisesTheMarkBeyondItsCommit(t *testing.T) {
	t.Parallel()
	commit := int64(1_700_000_000_000)
	for _, ahead := range []time.Duration{DefaultMaxDrift, DefaultMaxDrift + time.Millisecond, 24 * time.Hour, 100 * 365 * 24 * time.Hour} {
		b := New[string](1, 1<<20, 0)
		b.Attach(0)
		far, err := hlc.Pack(commit+ahead.Milliseconds(), 7)
		if err != nil {
			t.Fatal(err)
		}
		it := stamped(0, far, "far")
		it.CommitMicros = commit*1000 + 999
		found := b.Add(it)
		near, _ := hlc.Pack(commit+1, 0)
		it = stamped(0, near, "near")
		it.CommitMicros = commit*1000 + 5000
		b.Add(it)
		w, _ := hlc.Pack(commit+2, 0)
		b.Advance(0, w)
		out := drain(b)
		if ahead == DefaultMaxDrift {
			if found != 0 || len(out) != 1 || out[0].Value != "near" {
				t.Errorf("%s ahead is not too far: found %s, went out %v", ahead, found, values(out))
			}
			continue
		}
		if found != Future || !slices.Equal(values(out), []string{"far", "near"}) || out[0].Stamp != far {
			t.Errorf("%s ahead: found %s, went out %v", ahead, found, values(out))
		}
		if f := b.Figures(); f.Released != near || f.Future != 1 || f.Late != 0 {
			t.Errorf("%s ahead: figures %+v", ahead, f)
		}
	}
}

func TestAnEventWithoutAStampStandsAtItsCommitTime(t *testing.T) {
	t.Parallel()
	b := New[string](1, 1<<20, 0)
	b.Attach(0)
	commit := int64(1_700_000_000_000)
	for _, c := range []struct {
		name              string
		physical, logical int64
	}{{"before", commit - 1, 9}, {"", 0, 0}, {"after", commit, 1}} {
		it := Item[string]{Value: c.name, CommitMicros: commit*1000 + 700}
		if c.name != "" {
			it.Stamped = true
			it.Stamp, _ = hlc.Pack(c.physical, c.logical)
		}
		b.Add(it)
	}
	if f := b.Figures(); f.Unstamped != 1 || f.Future != 0 {
		t.Errorf("figures %+v", f)
	}
	b.Detach(0)
	if got := values(drain(b)); !slices.Equal(got, []string{"before", "", "after"}) {
		t.Errorf("order %q", got)
	}
	for _, micros := range []int64{-1, 0, 1 << 62} {
		if s, found := effective(0, false, micros, time.Hour); found != Unstamped || s.PhysicalMillis() > hlc.MaxPhysical {
			t.Errorf("commit at %d µs: %s %s", micros, s, found)
		}
	}
}

func TestAStampWhoseCommitTimeIsUnknownIsNotTrusted(t *testing.T) {
	t.Parallel()
	far, _ := hlc.Pack(1_700_000_000_000, 0)
	if s, found := effective(far, true, 0, time.Hour); found != Future || s != 0 {
		t.Errorf("placed at %s, %s", s, found)
	}
}

func TestFoundSpeaks(t *testing.T) {
	t.Parallel()
	if got := (Late | Raised).String(); got != "late, raised" {
		t.Errorf("%q", got)
	}
	if got := Found(0).String(); got != "on time" {
		t.Errorf("%q", got)
	}
}
