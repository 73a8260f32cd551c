package ack

import (
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/event"
)

func at(n int) event.Position { return event.AtLSN(event.LSN(n)) }

// twin is the obvious window: a slice of counters, scanned from the front.
type twin struct {
	pending []int
	end     []event.Position
	index   map[uint64]int // of the entries that have events
	head    int
}

func (w *twin) low() (event.Position, bool) {
	var low event.Position
	start := w.head
	for w.head < len(w.pending) && w.pending[w.head] == 0 {
		low = w.end[w.head]
		w.head++
	}
	return low, w.head > start
}

func TestLowAgreesWithTheObviousWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := NewWindow(8)
		slow := twin{index: map[uint64]int{}}
		var inFlight []uint64 // one per event without a result
		open := -1
		var openSeq uint64
		lsn := 0
		var confirmed event.Position
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			lsn++
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0: // begin, or events, or commit
				if open < 0 {
					seq, ok := w.Open()
					if !ok {
						if w.Len() != 8 {
							t.Fatalf("Open refused with %d of 8 entries", w.Len())
						}
						continue
					}
					slow.pending = append(slow.pending, 1)
					slow.end = append(slow.end, event.Position{})
					open, openSeq = len(slow.pending)-1, seq
					slow.index[seq] = open
				}
				n := rapid.IntRange(1, 3).Draw(t, "events")
				w.Add(openSeq, n)
				slow.pending[open] += n
				for range n {
					inFlight = append(inFlight, openSeq)
				}
			case 1:
				if open >= 0 {
					w.Close(openSeq, at(lsn), 0)
					slow.pending[open]--
					slow.end[open] = at(lsn)
					open = -1
				}
			case 2:
				if open < 0 && w.Idle(at(lsn)) {
					slow.pending = append(slow.pending, 0)
					slow.end = append(slow.end, at(lsn))
				}
			case 3:
				if len(inFlight) > 0 {
					i := rapid.IntRange(0, len(inFlight)-1).Draw(t, "which")
					w.Done(inFlight[i])
					slow.pending[slow.index[inFlight[i]]]--
					inFlight = append(inFlight[:i], inFlight[i+1:]...)
				}
			case 4:
				got, ok := w.Low(nil)
				want, wantOK := slow.low()
				if got != want || ok != wantOK {
					t.Fatalf("Low = %v %v, the obvious window says %v %v", got, ok, want, wantOK)
				}
				if ok && got.Compare(confirmed) <= 0 {
					t.Fatalf("Low went from %v to %v", confirmed, got)
				}
				if ok {
					confirmed = got
				}
			}
		}
	})
}

func TestDoneFromManyGoroutinesNeverLetsLowPassAnOpenEvent(t *testing.T) {
	t.Parallel()
	const txns, perTxn = 5000, 7
	w := NewWindow(64)
	type ticket struct {
		seq uint64
		txn int
	}
	work := make(chan ticket, 256)
	var left [txns]struct {
		mu sync.Mutex
		n  int
	}
	var acks sync.WaitGroup
	for range 4 {
		acks.Go(func() {
			for tk := range work {
				if rand.IntN(50) == 0 {
					for range 100 {
						_ = rand.IntN(2)
					}
				}
				l := &left[tk.txn]
				l.mu.Lock()
				l.n--
				l.mu.Unlock()
				w.Done(tk.seq)
			}
		})
	}
	var committer sync.WaitGroup
	room := make(chan struct{}, 1)
	last := 0
	committer.Go(func() {
		for last < txns {
			pos, ok := w.Low(nil)
			if !ok {
				select {
				case room <- struct{}{}:
				default:
				}
				continue
			}
			now := int(pos.LSN)
			if now <= last {
				t.Errorf("Low went from %d to %d", last, now)
				return
			}
			for i := last; i < now; i++ {
				l := &left[i]
				l.mu.Lock()
				n := l.n
				l.mu.Unlock()
				if n != 0 {
					t.Errorf("Low = %d although transaction %d has %d events without a result", now, i+1, n)
					return
				}
			}
			last = now
			select {
			case room <- struct{}{}:
			default:
			}
		}
	})
	for i := range txns {
		left[i].n = perTxn
		seq, ok := w.Open()
		for !ok {
			<-room
			seq, ok = w.Open()
		}
		w.Add(seq, perTxn)
		for range perTxn {
			work <- ticket{seq, i}
		}
		w.Close(seq, at(i+1), 0)
	}
	close(work)
	acks.Wait()
	committer.Wait()
}

func TestIdlePlacesTakeOneEntry(t *testing.T) {
	t.Parallel()
	w := NewWindow(4)
	seq, _ := w.Open()
	w.Add(seq, 1)
	w.Close(seq, at(1), 0)
	for i := range 100 {
		if !w.Idle(at(2 + i)) {
			t.Fatalf("idle place %d did not fit behind the others", i)
		}
	}
	if _, ok := w.Low(nil); ok {
		t.Fatal("an idle place overtook an event without a result")
	}
	w.Done(seq)
	if pos, ok := w.Low(nil); !ok || pos != at(101) {
		t.Fatalf("Low = %v %v, want 0/65", pos, ok)
	}
}

func TestFullWindowRefusesInsteadOfOverwriting(t *testing.T) {
	t.Parallel()
	w := NewWindow(2)
	a, _ := w.Open()
	if _, ok := w.Open(); !ok {
		t.Fatal("second entry refused")
	}
	if _, ok := w.Open(); ok {
		t.Fatal("third entry of two was given out")
	}
	w.Close(a, at(1), 0)
	if pos, ok := w.Low(nil); !ok || pos != at(1) {
		t.Fatalf("Low = %v %v", pos, ok)
	}
	if _, ok := w.Open(); !ok {
		t.Fatal("no entry although one was confirmed")
	}
}

func TestWindowDoesNotAllocate(t *testing.T) {
	w := NewWindow(16)
	n := 0
	if allocs := testing.AllocsPerRun(1000, func() {
		n++
		seq, _ := w.Open()
		w.Add(seq, 1)
		w.Close(seq, at(n), 0)
		w.Done(seq)
		w.Low(nil)
	}); allocs != 0 {
		t.Fatalf("%v allocations per transaction, want 0", allocs)
	}
}

func BenchmarkTransactionOfOneEvent(b *testing.B) {
	b.ReportAllocs()
	w := NewWindow(1024)
	for b.Loop() {
		seq, _ := w.Open()
		w.Add(seq, 1)
		w.Close(seq, event.AtLSN(1), 0)
		w.Done(seq)
		w.Low(nil)
	}
}
