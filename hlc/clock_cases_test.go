package hlc

// The field cases that a clock has to stand, C64 to C68 (test/cases holds those of
// the relay). C67 with the checkpoint in a real database is in stage/postgres.

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

// C64, clock steps back (rooch-network/rooch#2791, bvanelli/actualpy#196): strictly
// increasing; the physical part stays on its old value while the counter grows, and
// returns to wall time when that has caught up.
func TestStampsRiseThroughAStepBackAndReturnToWallTimeWhenItCatchesUp(t *testing.T) {
	t.Parallel()
	w, c := clockAt(1_700_000_000_000)
	last := c.Now()
	tick := func() Stamp {
		t.Helper()
		w.step(time.Millisecond) // 1 kHz
		s := c.Now()
		if s <= last || s.String() <= last.String() {
			t.Fatalf("%s after %s at wall clock %s", s, last, w.at.UTC())
		}
		last = s
		return s
	}
	for range 100 {
		tick()
	}
	top := w.at
	w.step(-5 * time.Minute)
	for i := range 10 * 60 * 1000 {
		s := tick()
		switch {
		case w.at.After(top):
			// 300 000 stamps into the old millisecond carry it a few further.
			if ahead := -behind(s, w.at); ahead > 4*time.Millisecond {
				t.Fatalf("stamp %d is %s ahead after the wall clock has caught up", i, ahead)
			}
		case s.PhysicalMillis() < top.UnixMilli(), s.PhysicalMillis() > top.UnixMilli()+4:
			t.Fatalf("stamp %d is %s, want the old millisecond %d until the wall clock has caught up", i, s, top.UnixMilli())
		}
	}
	if last != stampOf(w.at) {
		t.Errorf("the last stamp is %s at wall clock %d", last, w.at.UnixMilli())
	}
}

// C65, a poisoned stamp from the future (yugabyte/yugabyte-db#10628,
// calimero-network/core#1580, restatedev/restate#4109): beyond the allowed offset a
// stamp is not merged; the caller counts it; later stamps stay within 1 s of wall
// time, also after a restart.
func TestStampFromTheFutureIsRefusedAndLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w, c := clockAt(1_700_000_000_000)
	day := 24 * time.Hour
	poison := []Stamp{stampOf(w.at.Add(day)), stampOf(w.at.Add(10 * 365 * day)), math.MaxInt64}
	refused := 0
	for i := range 103 {
		w.step(time.Millisecond)
		remote := stampOf(w.at.Add(-time.Second))
		if i%30 == 1 && i/30 < len(poison) {
			remote = poison[i/30]
		}
		if _, err := c.Observe(remote); errors.As(err, new(*DriftError)) {
			refused++
		} else {
			mustBeNil(err)
		}
		if d := behind(c.Now(), w.at).Abs(); d > time.Second {
			t.Fatalf("stamp %d is %s away from wall time", i, d)
		}
	}
	if refused != len(poison) {
		t.Errorf("%d refusals, want %d", refused, len(poison))
	}
	// A restart: what a checkpoint keeps is what was issued.
	mark := c.Last()
	c = New(w.now, 0)
	mustBeNil(c.Resume(mark))
	if s := c.Now(); s <= mark || behind(s, w.at).Abs() > time.Second {
		t.Errorf("first stamp %s after a restart from %s at wall clock %d", s, mark, w.at.UnixMilli())
	}
}

// C66, equal physical time on merge (calimero-network/core#2635 and #2662): the
// counter is max+1 on equal time, and the remote's +1 where the remote is ahead.
func TestWhatIsIssuedAfterAMergeIsGreaterOnEqualTimeToo(t *testing.T) {
	t.Parallel()
	const p = 1_700_000_000_000
	_, c := clockAt(p - 10)
	mustBeNil(c.Resume(pack(p, 5)))
	if s := must(c.Observe(pack(p, 9))); s != pack(p, 10) {
		t.Errorf("(P,5) merged with (P,9) gives %s", s)
	}
	if s := must(c.Observe(pack(p+1, 7))); s != pack(p+1, 8) {
		t.Errorf("merged with (P+1,7) it gives %s", s)
	}
	if s := c.Now(); s != pack(p+1, 9) {
		t.Errorf("and then %s", s)
	}
}

// C67, restart from an old snapshot (theinterfold/interfold#1669): the first stamp
// after the start is greater than the greatest durable one.
func TestStampsAfterARestartAreAboveTheMarkThoughTheWallClockIsBehindIt(t *testing.T) {
	t.Parallel()
	w, c := clockAt(1_700_000_002_000) // 2 s ahead
	var mark Stamp
	for range 10_000 {
		mark = c.Now()
	}
	w.step(-2 * time.Second)
	c = New(w.now, 0)
	mustBeNil(c.Resume(mark))
	first := c.Now()
	if first != mark+1 {
		t.Errorf("first stamp %s after the mark %s", first, mark)
	}
	w.step(3 * time.Second)
	if s := c.Now(); s != stampOf(w.at) {
		t.Errorf("%s once the wall clock has passed the mark", s)
	}
}

// C68, counter overflow (ByConity/ByConity#1058, bvanelli/actualpy#196): carry into
// the physical part; never wraps, never panics; byte order is time order.
func TestCounterCarriesAndNeverWraps(t *testing.T) {
	t.Parallel()
	for _, n := range []int{70_000, 300_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w, c := clockAt(1_700_000_000_000)
			first := c.Now()
			last, text := first, first.String()
			for i := 1; i < n; i++ {
				s := c.Now()
				next := s.String()
				if s != last+1 || next <= text {
					t.Fatalf("stamp %d is %s after %s", i, next, text)
				}
				last, text = s, next
			}
			if want := pack(1_700_000_000_000+int64(n-1)/65536, int64(n-1)%65536); last != want {
				t.Errorf("the last of %d is %s, want %s", n, last, want)
			}
			w.step(time.Second)
			if s := c.Now(); s != stampOf(w.at) {
				t.Errorf("%s after a second", s)
			}
		})
	}
}
