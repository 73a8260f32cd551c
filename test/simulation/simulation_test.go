package simulation

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/reorder"
)

const seeds = 60

// day is a world of the right kind, with true bounds.
func day(seed uint64, skew time.Duration) Options {
	return Options{Seed: seed, Skew: skew, Transaction: 2 * time.Second, Staged: 20 * time.Millisecond, Flows: 40}
}

// perturbed is what befalls a relay: lags of the two sources, and streams that stand still.
func perturbed(seed uint64, mode Mode) Plan {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := Plan{Seed: seed, Mode: mode}
	for s := range sources {
		p.Lag[s] = time.Duration(rng.IntN(500)) * time.Millisecond
		if rng.IntN(2) == 0 {
			from := time.Duration(rng.IntN(500)) * time.Millisecond
			p.Stalls[s] = []Span{{from, from + time.Duration(rng.IntN(4000))*time.Millisecond}}
		}
	}
	return p
}

func expectNone(t *testing.T, w *World, o Output) {
	t.Helper()
	if o.Stuck {
		t.Errorf("seed %d, skew %s, %s: it does not come to the end; %d of %d events went out", w.Seed, w.Skew, o.Plan.Mode, len(o.Out), len(w.Events))
	}
	for _, f := range Check(w, o) {
		t.Errorf("seed %d, skew %s, %s: %s: %s", w.Seed, w.Skew, o.Plan.Mode, f.Rule, f.Text)
	}
}

// What each mode promises holds at any skew; what it does not promise is seen to break,
// so that the test would notice.
func TestEachOrderKeepsItsPromisesAtAnySkew(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 250 * time.Millisecond} {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			var ahead, events int
			var raised, conflicts uint64
			turned := map[Mode]int{}
			data := map[Mode]int{}
			all := 0
			for seed := range uint64(seeds) {
				w := NewWorld(day(seed, skew))
				ahead += w.Ahead
				for _, mode := range []Mode{Commit, Stamps, Heads} {
					o := Publish(w, perturbed(seed, mode))
					expectNone(t, w, o)
					if t.Failed() {
						return
					}
					events += len(o.Out)
					raised += o.Figures.Raised
					conflicts += o.Figures.Conflicts
					for _, kind := range []Kind{Flow, Message} {
						n, _ := Turned(w, o, kind, true)
						turned[mode] += n
					}
					n, of := Turned(w, o, Data, false)
					data[mode] += n
					all += of
				}
			}
			t.Logf("%d events; %d merges ahead; across sources, effects before their causes: %v; of %d reads in one source: %v; raised %d, conflicts %d",
				events/3, ahead, turned, all/3, data, raised, conflicts)
			if skew > 0 && ahead == 0 {
				t.Error("no merge pushed a clock ahead: nothing here depends on merging")
			}
			if turned[Commit] == 0 {
				t.Error("reading two sources as they come turned no edge across them: the sources do not lag")
			}
			if skew >= 50*time.Millisecond && (data[Stamps] == 0 || data[Heads] >= data[Stamps]) {
				t.Errorf("stamps turned %d reads, the merge by heads %d: want some, and fewer", data[Stamps], data[Heads])
			}
			if raised == 0 || skew >= 50*time.Millisecond && conflicts == 0 {
				t.Errorf("%d items were raised, %d conflicts: the merge by heads was not reached", raised, conflicts)
			}
		})
	}
}

func TestTheSameSeedGivesTheSameDay(t *testing.T) {
	t.Parallel()
	a, b := NewWorld(day(3, 50*time.Millisecond)), NewWorld(day(3, 50*time.Millisecond))
	p := perturbed(3, Heads)
	x, y := Publish(a, p), Publish(b, p)
	if !reflect.DeepEqual(a.Events, b.Events) || !slices.Equal(x.Out, y.Out) || x.Figures != y.Figures {
		t.Error("two runs of one seed differ")
	}
	if c := NewWorld(day(4, 50*time.Millisecond)); reflect.DeepEqual(a.Events, c.Events) {
		t.Error("two seeds give the same day")
	}
}

// A saga writes first in one database and then in the other; the first one's stream is
// 500 ms late.
func TestASagaKeepsItsOrderThoughTheFirstSourceLags(t *testing.T) {
	t.Parallel()
	naive, all := 0, 0
	for seed := range uint64(seeds) {
		w := NewWorld(day(seed, 5*time.Millisecond))
		for _, mode := range []Mode{Commit, Stamps, Heads} {
			p := Plan{Seed: seed, Mode: mode}
			p.Lag[0] = 500 * time.Millisecond
			o := Publish(w, p)
			expectNone(t, w, o)
			turned, of := Turned(w, o, Flow, true)
			all += of
			switch {
			case mode == Commit:
				naive += turned
			case mode == Stamps && turned > 0:
				t.Errorf("seed %d: %d effects went out before their causes", seed, turned)
			}
		}
	}
	if naive == 0 {
		t.Errorf("reading both as they come turned none of %d: the test shows nothing", all/3)
	}
}

// In a backlog the commits themselves say how far a source is.
func TestABacklogIsReleasedInOrderByItsCommitTimes(t *testing.T) {
	t.Parallel()
	peak, all := 0, 0
	for seed := range uint64(seeds / 4) {
		o := day(seed, 50*time.Millisecond)
		o.Transaction, o.Flows = 40*time.Millisecond, 400
		w := NewWorld(o)
		for _, mode := range []Mode{Stamps, Heads} {
			p := perturbed(seed, mode)
			p.Blind = time.Duration(w.End-start)*time.Microsecond + 5*time.Second
			out := Publish(w, p)
			expectNone(t, w, out)
			peak += out.Peak
			all += len(out.Out)
		}
	}
	t.Logf("%d of %d events were held at once", peak, all)
	if 4*peak > 3*all {
		t.Error("most of it waited for the end of the log")
	}
}

// After a crash the events that were held come once more from the log: some of them
// twice, none never, each run in order.
func TestACrashMidBufferCostsDuplicatesOnly(t *testing.T) {
	t.Parallel()
	twice, heldBack := 0, 0
	for seed := range uint64(seeds) {
		w := NewWorld(day(seed, 50*time.Millisecond))
		for _, mode := range []Mode{Commit, Stamps, Heads} {
			p := perturbed(seed, mode)
			rng := rand.New(rand.NewPCG(seed, 8))
			for at := 0; len(p.Crashes) < 3; {
				at += rng.IntN(1200)
				p.Crashes = append(p.Crashes, time.Duration(at)*time.Millisecond)
			}
			o := Publish(w, p)
			expectNone(t, w, o)
			n := len(o.Out) - committed(w)
			twice += n
			if mode != Commit {
				heldBack += n
			}
		}
	}
	if twice == 0 || heldBack == 0 {
		t.Errorf("%d duplicates, %d of them in the order of stamps: no crash hit anything", twice, heldBack)
	}
}

func committed(w *World) (n int) {
	for s := range sources {
		for _, tx := range w.Logs[s] {
			n += len(w.Txs[tx].Events)
		}
	}
	return n
}

// Budgets of three events for each source, smaller than a transaction: one source waits for
// the other, and never both.
func TestTinyBudgetsCostTimeAndNothingElse(t *testing.T) {
	t.Parallel()
	stuck, free, tight := 0, 0, 0
	for seed := range uint64(seeds) {
		w := NewWorld(day(seed, 50*time.Millisecond))
		for _, mode := range []Mode{Stamps, Heads} {
			p := perturbed(seed, mode)
			free += Publish(w, p).Peak
			p.Budget = 3
			o := Publish(w, p)
			expectNone(t, w, o)
			tight += o.Peak
			p.AlwaysWait = true
			if Publish(w, p).Stuck {
				stuck++
			}
		}
	}
	// More than three: the source that all wait for reads on.
	if tight >= free {
		t.Errorf("%d events were held at most in all runs, %d without a budget", tight, free)
	}
	if stuck == 0 {
		t.Error("not even sources that always wait stopped each other: the test shows nothing")
	}
}

// A source that all wait for gives up order instead of reading on: the budget is kept, what
// that makes late is counted, and nothing else is out of order.
func TestGivingUpOrderForMemoryKeepsTheBudgetAndIsCounted(t *testing.T) {
	t.Parallel()
	var early, late uint64
	for seed := range uint64(seeds) {
		w := NewWorld(day(seed, 50*time.Millisecond))
		for _, mode := range []Mode{Stamps, Heads} {
			p := perturbed(seed, mode)
			p.Budget, p.Relieve = 10, true
			o := Publish(w, p)
			expectNone(t, w, o)
			if o.Peak > sources*10 {
				t.Errorf("seed %d, %s: %d events were held", seed, mode, o.Peak)
			}
			early += o.Figures.Early
			late += o.Figures.Late
		}
	}
	if early == 0 || late == 0 {
		t.Errorf("%d events went early, %d were late: the budget was never short", early, late)
	}
}

// The watermark is worth what its bounds are: with those too small events come late. They
// are counted, and the others are in order.
func TestBoundsThatAreNotTrueMakeEventsLateAndLoseNone(t *testing.T) {
	t.Parallel()
	late := map[time.Duration]uint64{}
	for seed := range uint64(seeds) {
		w := NewWorld(day(seed, 50*time.Millisecond))
		for _, T := range []time.Duration{w.Transaction, time.Second, 10 * time.Millisecond} {
			p := perturbed(seed, Stamps)
			p.Bounds = reorder.Bounds{Transaction: T, Skew: 70 * time.Millisecond}
			p.Bounds.Staged = T // the open transactions say nothing more
			o := Publish(w, p)
			expectNone(t, w, o)
			late[T] += o.Figures.Late
		}
	}
	if late[2*time.Second] != 0 || late[time.Second] == 0 || late[10*time.Millisecond] <= late[time.Second] {
		t.Errorf("late events by T: %v; want none for the true one, and more the smaller it is", late)
	}
}

// A source that stands still for longer than DetachAfter is not waited for. That must be
// longer than T: for so long a transaction that is held open may stop the watermark of a
// source that is well.
func TestADetachedSourceIsLateOnItsReturnAndTheOthersStayInOrder(t *testing.T) {
	t.Parallel()
	var late uint64
	for seed := range uint64(seeds) {
		w := NewWorld(day(seed, 50*time.Millisecond))
		p := Plan{Seed: seed, Mode: Stamps, DetachAfter: 2500 * time.Millisecond}
		p.Stalls[0] = []Span{{100 * time.Millisecond, 8 * time.Second}}
		o := Publish(w, p)
		expectNone(t, w, o)
		late += o.Figures.Late
		for _, out := range o.Out {
			if out.Found.Has(reorder.Late) && w.Events[out.Event].Source != 0 {
				t.Fatalf("seed %d: an event of the source that never stalled is late", seed)
			}
		}
	}
	if late == 0 {
		t.Error("nothing was late: no source was detached")
	}
}
