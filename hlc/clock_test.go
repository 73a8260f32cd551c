package hlc

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

//go:embed testdata/clock.txt
var steps string

// wallClock is a wall clock that a test sets.
type wallClock struct{ at time.Time }

func (w *wallClock) now() time.Time         { return w.at }
func (w *wallClock) step(by time.Duration)  { w.at = w.at.Add(by) }
func clockAt(ms int64) (*wallClock, *Clock) { return driftingAt(ms, 0) }
func must(s Stamp, err error) Stamp         { mustBeNil(err); return s }
func pack(ms, logical int64) Stamp          { return must(Pack(ms, logical)) }
func stampOf(at time.Time) Stamp            { return pack(at.UnixMilli(), 0) }
func behind(s Stamp, at time.Time) time.Duration {
	return at.Sub(time.UnixMilli(s.PhysicalMillis()))
}

func mustBeNil(err error) {
	if err != nil {
		panic(err)
	}
}

func driftingAt(ms int64, drift time.Duration) (*wallClock, *Clock) {
	w := &wallClock{at: time.UnixMilli(ms)}
	return w, New(w.now, drift)
}

func TestEachStepIsThatOfTheContract(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(steps) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		n++
		f := strings.Fields(line)
		drift := time.Duration(-1)
		if d := f[len(f)-2]; d != "none" {
			var err error
			if drift, err = time.ParseDuration(d); err != nil {
				t.Fatal(line, err)
			}
		}
		var wall int64
		if _, err := fmt.Sscan(f[len(f)-3], &wall); err != nil {
			t.Fatal(line, err)
		}
		_, c := driftingAt(wall, drift)
		last := pair(t, f[0])
		mustBeNil(c.Resume(last))
		var got Stamp
		var err error
		switch f[1] {
		case "now":
			got = c.Now()
		case "observe":
			got, err = c.Observe(pair(t, f[2]))
		case "resume":
			err = c.Resume(pair(t, f[2]))
			got = c.Now()
		default:
			t.Fatal(line)
		}
		if want := f[len(f)-1]; want == "refused" {
			if err == nil || got != 0 || c.Last() != last {
				t.Errorf("%s: got %s, %v, and the clock is at %s", line, got, err, c.Last())
			}
		} else if err != nil || got != pair(t, want) || c.Last() != got {
			t.Errorf("%s: got %s, %v, and the clock is at %s", line, got, err, c.Last())
		}
	}
	if n != 21 {
		t.Fatalf("%d steps read, want 21", n)
	}
}

func pair(t *testing.T, text string) Stamp {
	t.Helper()
	var p, l int64
	if _, err := fmt.Sscanf(text, "%d,%d", &p, &l); err != nil {
		t.Fatal(text, err)
	}
	return pack(p, l)
}

func TestDefaultDriftIsFiveMinutesAndNoMillisecondMore(t *testing.T) {
	t.Parallel()
	const wall = 1_700_000_000_000
	_, c := clockAt(wall)
	if got, err := c.Observe(pack(wall+300_000, 4)); err != nil || got != pack(wall+300_000, 5) {
		t.Errorf("a stamp 5 min ahead: %s %v", got, err)
	}
	_, err := c.Observe(pack(wall+300_001, 0))
	if d, ok := errors.AsType[*DriftError](err); !ok || d.Remote != pack(wall+300_001, 0) || d.Wall.UnixMilli() != wall || d.MaxDrift != 5*time.Minute {
		t.Errorf("a stamp 5 min and 1 ms ahead: %v", err)
	}
	const want = "stamp 001700000300001.00000 (2023-11-14T22:18:20.001Z) is 5m0.001s ahead of the wall clock at 2023-11-14T22:13:20.000Z, more than the 5m0s allowed"
	if err.Error() != want {
		t.Errorf("the error reads\n%v, want\n%s", err, want)
	}
}

// What happens at the end of the format: nothing from outside leads a clock there,
// and it still issues.
func TestClockNeverRunsOut(t *testing.T) {
	t.Parallel()
	top := MaxClock.PhysicalMillis()
	for _, wall := range []int64{0, 1_700_000_000_000, top - 1000, top} {
		_, c := driftingAt(wall, math.MaxInt64)
		for _, remote := range []Stamp{MaxClock + 1, pack(MaxPhysical, 0), pack(MaxPhysical, MaxLogical), math.MaxInt64 + 1, math.MaxUint64} {
			if got, err := c.Observe(remote); err == nil {
				t.Errorf("wall %d: %d was taken in as %s", wall, uint64(remote), got)
			}
			if err := c.Resume(remote); err == nil || errors.As(err, new(*DriftError)) {
				t.Errorf("wall %d: resumed from %d: %v", wall, uint64(remote), err)
			}
			if c.Last() != 0 {
				t.Fatalf("wall %d: the clock is at %s after a refusal", wall, c.Last())
			}
		}
	}
	w, c := clockAt(top)
	mustBeNil(c.Resume(MaxClock))
	w.at = time.Unix(math.MaxInt64/2000, 0) // as far as milliseconds go
	last := c.Last()
	for range 200_000 {
		next := c.Now()
		if next <= last {
			t.Fatalf("%s after %s", next, last)
		}
		last = next
	}
	if back, err := Pack(last.PhysicalMillis(), int64(last.Logical())); err != nil || back != last {
		t.Errorf("stamp %s is outside the format: %v", last, err)
	}
	if err := c.Resume(last); err == nil {
		t.Error("a mark above MaxClock was resumed")
	}
}

func TestWallClockBefore1970CountsAs1970(t *testing.T) {
	t.Parallel()
	w, c := clockAt(-86_400_000)
	if s := c.Now(); s != 1 {
		t.Errorf("first stamp %s, want the smallest after the zero value", s)
	}
	w.at = time.UnixMilli(5)
	if s := c.Now(); s != pack(5, 0) {
		t.Errorf("%s once the wall clock is at 5 ms", s)
	}
}

func TestStampsOfConcurrentCallersAreAllDifferentAndRiseForEach(t *testing.T) {
	t.Parallel()
	// A wall clock that runs to and fro. It takes no lock: the callers shall meet in the clock.
	var calls atomic.Int64
	c := New(func() time.Time {
		n := calls.Add(1)
		return time.UnixMilli(1_700_000_000_000 + n%7 - n%3)
	}, 0)
	const callers, each = 4, 50_000
	all := make([][]Stamp, callers)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			for k := range each {
				var s Stamp
				switch k % 50 {
				case 0:
					remote := c.Last() + 3
					if s = must(c.Observe(remote)); s <= remote {
						t.Errorf("%s after observing %s", s, remote)
					}
				case 1:
					mark := c.Last() + 2
					mustBeNil(c.Resume(mark))
					if s = c.Now(); s <= mark {
						t.Errorf("%s after a resume from %s", s, mark)
					}
				default:
					s = c.Now()
				}
				all[i] = append(all[i], s)
			}
		})
	}
	wg.Wait()
	seen := make(map[Stamp]bool, callers*each)
	for i, stamps := range all {
		for k, s := range stamps {
			if k > 0 && s <= stamps[k-1] {
				t.Fatalf("caller %d got %s after %s", i, s, stamps[k-1])
			}
			if seen[s] {
				t.Fatalf("%s was issued twice", s)
			}
			seen[s] = true
		}
	}
}

func TestLeadSaysHowFarTheClockIsAheadAndEndsWhenTheWallClockHasCaughtUp(t *testing.T) {
	t.Parallel()
	w, c := clockAt(1_700_000_000_000)
	if got := c.Lead(); got != 0 {
		t.Errorf("a new clock leads by %s", got)
	}
	must(c.Observe(stampOf(w.at.Add(3 * time.Second))))
	if got := c.Lead(); got != 3*time.Second {
		t.Errorf("lead %s, want 3s", got)
	}
	w.step(4 * time.Second)
	if got := c.Lead(); got != 0 {
		t.Errorf("lead %s once the wall clock has passed", got)
	}
}

func TestIssuingAllocatesNothing(t *testing.T) {
	_, c := clockAt(1_700_000_000_000)
	if n := testing.AllocsPerRun(1000, func() { must(c.Observe(c.Now())) }); n != 0 {
		t.Errorf("%v allocations per stamp", n)
	}
}
