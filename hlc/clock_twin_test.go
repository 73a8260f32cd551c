package hlc

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// twin is the algorithm as the paper and the outbox contract word it, on pairs of
// big integers: slow, and nothing in it can wrap.
type twin struct{ p, l *big.Int }

func newTwin() *twin { return &twin{new(big.Int), new(big.Int)} }

func (w *twin) now(wall *big.Int) {
	if wall.Cmp(w.p) > 0 {
		w.set(wall, new(big.Int))
		return
	}
	w.set(w.p, plusOne(w.l))
}

func (w *twin) observe(p, l, wall *big.Int) {
	top := w.p
	if p.Cmp(top) > 0 {
		top = p
	}
	if wall.Cmp(top) > 0 {
		top = wall
	}
	ours, theirs := top.Cmp(w.p) == 0, top.Cmp(p) == 0
	switch {
	case ours && theirs && l.Cmp(w.l) > 0:
		w.set(top, plusOne(l))
	case ours:
		w.set(top, plusOne(w.l))
	case theirs:
		w.set(top, plusOne(l))
	default:
		w.set(top, new(big.Int))
	}
}

func (w *twin) resume(p, l *big.Int) {
	if c := p.Cmp(w.p); c > 0 || c == 0 && l.Cmp(w.l) > 0 {
		w.set(p, l)
	}
}

// set carries a counter that is over.
func (w *twin) set(p, l *big.Int) {
	if l.Cmp(big.NewInt(65535)) > 0 {
		p, l = plusOne(p), new(big.Int)
	}
	w.p, w.l = p, l
}

func plusOne(n *big.Int) *big.Int { return new(big.Int).Add(n, big.NewInt(1)) }

func (w *twin) stamp() Stamp { return pack(w.p.Int64(), w.l.Int64()) }

// Property: over any steps and any movement of the wall clock the clock does what
// its twin does, and each stamp is greater than all that was issued, taken in or
// resumed from before, and not below the wall clock.
func TestClockDoesWhatItsTwinDoesUnderAnyWallClock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Few milliseconds and counters near the carry, so that they meet.
		wallMS := rapid.Int64Range(0, rapid.SampledFrom([]int64{3, 10_000}).Draw(t, "span"))
		logical := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(MaxLogical-3, MaxLogical))
		drift := time.Duration(rapid.Int64Range(1, 5000).Draw(t, "drift")) * time.Millisecond
		w, c := driftingAt(0, drift)
		slow := newTwin()
		var seen Stamp
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			ms := wallMS.Draw(t, "wall")
			w.at = time.UnixMilli(ms)
			var got Stamp
			switch rapid.SampledFrom([]string{"now", "now", "observe", "resume"}).Draw(t, "step") {
			case "now":
				got = c.Now()
				slow.now(big.NewInt(ms))
			case "observe":
				p, l := wallMS.Draw(t, "ms"), logical.Draw(t, "logical")
				s, err := c.Observe(pack(p, l))
				if far := time.Duration(p-ms)*time.Millisecond > drift; far != (err != nil) {
					t.Fatalf("drift %s, wall %d, remote %d: %v", drift, ms, p, err)
				}
				if err != nil {
					if c.Last() != slow.stamp() {
						t.Fatalf("a refused stamp moved the clock from %s to %s", slow.stamp(), c.Last())
					}
					continue
				}
				seen = max(seen, pack(p, l))
				got = s
				slow.observe(big.NewInt(p), big.NewInt(l), big.NewInt(ms))
			case "resume":
				p, l := wallMS.Draw(t, "ms"), logical.Draw(t, "logical")
				mustBeNil(c.Resume(pack(p, l)))
				slow.resume(big.NewInt(p), big.NewInt(l))
				seen = max(seen, pack(p, l))
				if c.Last() != slow.stamp() {
					t.Fatalf("resumed to %s, the twin to %s", c.Last(), slow.stamp())
				}
				continue
			}
			if got != slow.stamp() || c.Last() != got {
				t.Fatalf("got %s, and the clock is at %s; the twin is at %s", got, c.Last(), slow.stamp())
			}
			if got <= seen || got.PhysicalMillis() < ms {
				t.Fatalf("%s at wall clock %d, with %s seen before", got, ms, seen)
			}
			seen = got
		}
	})
}
