package reorder

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
)

const millis = int64(1000) // microseconds

func at(n int) event.Position { return event.AtLSN(event.LSN(n)) }

func stampOf(micros int64) hlc.Stamp { return atMicros(micros) }

// server is a model of a database: transactions that are stamped, begin and commit, and
// a log of commits. Time passes in steps; every transaction keeps to bounds.
type server struct {
	bounds Bounds
	now    int64
	open   []transaction
	log    []transaction // the commit at index i ends at position i+1
	taken  int           // of the log, by the stream
}

type transaction struct {
	staged, begun, committed int64
	stamp                    hlc.Stamp
}

func (s *server) begin(beforeBegin, skew time.Duration) {
	staged := s.now - beforeBegin.Microseconds()
	s.open = append(s.open, transaction{staged: staged, begun: s.now, stamp: stampOf(staged - skew.Microseconds())})
}

// commit writes the record of the i-th open one; its time was taken a while before.
func (s *server) commit(i int, before time.Duration) {
	t := s.open[i]
	s.open = append(s.open[:i], s.open[i+1:]...)
	t.committed = max(t.begun, s.now-before.Microseconds())
	s.log = append(s.log, t)
}

// pass lets time go by, but not beyond what an open transaction may still last.
func (s *server) pass(d time.Duration) {
	then := s.now + d.Microseconds()
	for _, t := range s.open {
		then = min(then, t.staged+s.bounds.Transaction.Microseconds())
	}
	s.now = max(s.now, then)
}

func (s *server) oldest() int64 {
	oldest := s.now
	for _, t := range s.open {
		oldest = min(oldest, t.begun)
	}
	return oldest
}

// coming checks that nothing which was not taken yet is below w.
func (s *server) coming(w hlc.Stamp) error {
	for _, t := range s.open {
		if t.stamp < w {
			return fmt.Errorf("an open transaction has the stamp %s, the watermark is %s", t.stamp, w)
		}
	}
	for _, t := range s.log[s.taken:] {
		if t.stamp < w {
			return fmt.Errorf("a commit that was not taken has the stamp %s, the watermark is %s", t.stamp, w)
		}
	}
	return nil
}

func TestWatermarkNeverPassesWhatIsStillToCome(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Bounds{
			Transaction: time.Duration(rapid.IntRange(100, 5000).Draw(t, "T")) * time.Millisecond,
			Staged:      time.Duration(rapid.IntRange(0, 100).Draw(t, "T_pre")) * time.Millisecond,
			Skew:        time.Duration(rapid.IntRange(0, 300).Draw(t, "ε")) * time.Millisecond,
		}
		s := server{bounds: b, now: 1_700_000_000_000 * millis}
		p := NewProgress(b)
		var r event.Reading
		next := 0 // of the reading's three looks
		known := true
		// The slow twin remembers every bound and where it holds from.
		type lower struct{ at, micros int64 }
		var all []lower
		var last hlc.Stamp
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0:
				s.pass(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
			case 1:
				s.begin(ms(t, "staged before", b.Staged), ms(t, "behind", b.Skew))
			case 2:
				if n := len(s.open); n > 0 {
					s.commit(rapid.IntRange(0, n-1).Draw(t, "which"), ms(t, "held up", Jitter))
				}
			case 3, 4: // one more look; other steps come between
				switch next {
				case 0:
					r = event.Reading{NowMicros: s.now}
				case 1:
					if known = rapid.IntRange(0, 3).Draw(t, "known") > 0; known {
						r.OldestMicros = s.oldest()
					}
				case 2:
					r.At = at(len(s.log))
					p.Sample(r)
					low := r.NowMicros - b.Transaction.Microseconds()
					if known {
						low = max(low, min(r.NowMicros, r.OldestMicros)-b.Staged.Microseconds())
					}
					all = append(all, lower{int64(len(s.log)), low - b.Skew.Microseconds()})
				}
				next = (next + 1) % 3
			case 5:
				if s.taken < len(s.log) {
					c := s.log[s.taken].committed
					s.taken++
					p.Delivered(at(s.taken), c)
					all = append(all, lower{int64(s.taken), c - (Jitter + b.Transaction + b.Skew).Microseconds()})
				}
			case 6: // a keepalive says that there is nothing more
				s.taken = max(s.taken, min(len(s.log), s.taken))
				if s.taken == len(s.log) {
					p.Delivered(at(s.taken), 0)
				}
			}
			w := p.Watermark()
			if err := s.coming(w); err != nil {
				t.Fatal(err)
			}
			if w < last {
				t.Fatalf("the watermark went back from %s to %s", last, w)
			}
			last = w
			best := int64(0)
			for _, l := range all {
				if l.at <= int64(s.taken) {
					best = max(best, l.micros)
				}
			}
			if w != stampOf(best) {
				t.Fatalf("watermark %s, the best of all bounds that hold is %s", w, stampOf(best))
			}
		}
	})
}

func ms(t *rapid.T, what string, most time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(0, most.Milliseconds()).Draw(t, what)) * time.Millisecond
}

// The position must be read last. The other way round, what commits between the two
// looks is neither open nor below the position.
func TestAPositionReadBeforeTheOpenTransactionsMissesACommit(t *testing.T) {
	t.Parallel()
	for _, reversed := range []bool{false, true} {
		b := Bounds{Transaction: time.Minute}
		s := server{bounds: b, now: 1_700_000_000_000 * millis}
		p := NewProgress(b)
		s.begin(0, 0)
		s.pass(time.Second)
		r := event.Reading{NowMicros: s.now}
		if reversed {
			r.At = at(len(s.log))
			s.commit(0, 0)
			r.OldestMicros = s.oldest()
		} else {
			r.OldestMicros = s.oldest()
			s.commit(0, 0)
			r.At = at(len(s.log))
		}
		p.Sample(r)
		p.Delivered(at(0), 0)
		if err := s.coming(p.Watermark()); (err != nil) != reversed {
			t.Errorf("position read first: %t, and the watermark is found wrong: %v", reversed, err)
		}
		if !reversed {
			s.taken = 1
			p.Delivered(at(1), s.log[0].committed)
			if err := s.coming(p.Watermark()); err != nil {
				t.Error(err)
			}
		}
	}
}

// One open transaction holds the watermark where it began, however much else commits;
// T ends that, when it is not known what is open.
func TestWatermarkWaitsForTheOldestOpenTransactionAndNoLongerThanT(t *testing.T) {
	t.Parallel()
	b := Bounds{Transaction: time.Minute, Staged: time.Second, Skew: 250 * time.Millisecond}
	p := NewProgress(b)
	const start = 1_700_000_000_000_000
	second := time.Second.Microseconds()
	var lag []int64
	for i := range int64(90) {
		now := start + i*second
		p.Sample(event.Reading{NowMicros: now, OldestMicros: min(now, start+10*second), At: at(int(i) + 1)})
		p.Delivered(at(int(i)+1), 0)
		lag = append(lag, now/1000-p.Watermark().PhysicalMillis())
	}
	for i, want := range map[int]int64{0: 1250, 10: 1250, 30: 21_250, 60: 51_250, 70: 60_250, 89: 60_250} {
		if lag[i] != want {
			t.Errorf("after %d s the watermark is %d ms behind, want %d", i, lag[i], want)
		}
	}
}

// A prepared transaction tells no beginning: then T alone counts.
func TestWatermarkFallsBackToTWhereNothingIsKnownOfOpenTransactions(t *testing.T) {
	t.Parallel()
	p := NewProgress(Bounds{Transaction: time.Minute, Skew: time.Second})
	p.Sample(event.Reading{NowMicros: 100_000_000, At: at(1)})
	p.Delivered(at(1), 0)
	if got := p.Watermark().PhysicalMillis(); got != 39_000 {
		t.Errorf("watermark %d ms, want 39000", got)
	}
}

func TestWatermarkStandsStillWhileTheStreamDoes(t *testing.T) {
	t.Parallel()
	p := NewProgress(Bounds{})
	p.Sample(event.Reading{NowMicros: 1_000_000, OldestMicros: 1_000_000, At: at(1)})
	p.Delivered(at(1), 0)
	before := p.Watermark()
	for i := range 10_000 {
		p.Sample(event.Reading{NowMicros: int64(2_000_000 + i), OldestMicros: int64(2_000_000 + i), At: at(2 + i)})
	}
	if p.Watermark() != before {
		t.Fatal("readings alone moved the watermark")
	}
	if n := p.Behind(); n > maxReadings {
		t.Fatalf("%d readings are kept, want at most %d", n, maxReadings)
	}
	// What was thinned out makes it coarser, not wrong.
	for pos := 2; pos <= 10_001; pos += 100 {
		p.Delivered(at(pos), 0)
		if w, now := p.Watermark().PhysicalMillis(), int64(2_000_000+pos-2)/1000; w > now {
			t.Fatalf("at %d the watermark is %d ms, the server's clock was %d", pos, w, now)
		}
	}
	p.Delivered(at(10_001), 0)
	if got, want := p.Watermark(), stampOf(2_009_999); got != want {
		t.Errorf("at the end the watermark is %s, want that of the newest reading, %s", got, want)
	}
}

// In a backlog all readings are far ahead; the commits themselves carry the time.
func TestWatermarkMovesThroughABacklogByCommitTimes(t *testing.T) {
	t.Parallel()
	p := NewProgress(Bounds{Transaction: 2 * time.Second, Skew: 250 * time.Millisecond})
	p.Sample(event.Reading{NowMicros: 9_000_000_000, OldestMicros: 9_000_000_000, At: at(1000)})
	p.Delivered(at(1), 100_000_000)
	if got := p.Watermark().PhysicalMillis(); got != 100_000-1000-2000-250 {
		t.Errorf("watermark %d ms", got)
	}
}
