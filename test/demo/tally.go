package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// arrival is an event in the consumer's hand.
type arrival struct {
	id, key, kind, payload string
	// n is the number of the event in the order in which its key was written.
	n         int
	partition int32
	offset    int64
	at        time.Time
}

// written is an event that a writer is about to commit.
type written struct {
	id, key string
	n       int
	aside   bool // in the database's other way: a message, or a document that is gone with its commit
}

// tally compares what was committed with what arrived.
type tally struct {
	mu        sync.Mutex
	committed map[string]time.Time // by event id: when COMMIT was about to be sent
	unsure    map[string]bool      // COMMIT was not answered
	arrived   map[string]bool
	last      map[string]int   // by key: the highest n that arrived
	home      map[string]int32 // by key: the partition of its first event
	latency   []time.Duration

	duplicates, disorder int
	complaints           []string
	undone               struct{ events, transactions, savepoints int }
}

func newTally() *tally {
	return &tally{
		committed: map[string]time.Time{}, unsure: map[string]bool{}, arrived: map[string]bool{},
		last: map[string]int{}, home: map[string]int32{},
	}
}

// committing notes events whose COMMIT is about to be sent. The clock of the
// latency starts here: the moment after COMMIT returns would flatter us, since a
// consumer may hold the event before the writer has the server's answer.
func (t *tally) committing(events []written) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, e := range events {
		t.committed[e.id], t.unsure[e.id] = now, true
	}
}

// settled notes that COMMIT returned.
func (t *tally) settled(events []written) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		delete(t.unsure, e.id)
	}
}

// undo notes events that were rolled back, with their transaction or to a savepoint.
func (t *tally) undo(events int, wholeTransaction bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undone.events += events
	if wholeTransaction {
		t.undone.transactions++
	} else {
		t.undone.savepoints++
	}
}

// take judges an event that arrived: how long it took, and what is wrong with it.
func (t *tally) take(a arrival) (took time.Duration, remark string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun, known := t.committed[a.id]
	switch {
	case !known:
		return 0, t.complain("   NOT COMMITTED", "event %s of %s arrived and was never committed", a.id, a.key)
	case t.arrived[a.id]:
		t.duplicates++
		return a.at.Sub(begun), t.complain("   DUPLICATE", "event %d of %s arrived twice", a.n, a.key)
	}
	t.arrived[a.id] = true
	took = a.at.Sub(begun)
	t.latency = append(t.latency, took)
	home, seen := t.home[a.key]
	if !seen {
		t.home[a.key] = a.partition
	}
	switch {
	case seen && home != a.partition:
		t.disorder++
		remark = t.complain("   OTHER PARTITION", "event %d of %s is in partition %d, its first one in %d", a.n, a.key, a.partition, home)
	case a.n < t.last[a.key]:
		t.disorder++
		remark = t.complain("   OUT OF ORDER", "event %d of %s arrived after %d", a.n, a.key, t.last[a.key])
	}
	t.last[a.key] = max(t.last[a.key], a.n)
	return took, remark
}

func (t *tally) complain(remark, format string, args ...any) string {
	t.complaints = append(t.complaints, fmt.Sprintf(format, args...))
	return remark
}

// complete reports whether all that was committed has arrived.
func (t *tally) complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.unsure) == 0 && len(t.arrived) == len(t.committed)
}

// summary is the last line, with what is wrong.
type summary struct {
	events, lost, duplicates, disorder int
	p50, p99                           time.Duration
	complaints                         []string
}

func (t *tally) summary() summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := summary{events: len(t.committed), duplicates: t.duplicates, disorder: t.disorder, complaints: slices.Clone(t.complaints)}
	for id := range t.committed {
		if !t.arrived[id] {
			// A COMMIT that was not answered may have failed.
			if t.unsure[id] {
				s.events--
				continue
			}
			s.lost++
		}
	}
	if s.lost > 0 {
		s.complaints = append(s.complaints, fmt.Sprintf("%d committed events did not arrive", s.lost))
	}
	sorted := slices.Sorted(slices.Values(t.latency))
	if n := len(sorted); n > 0 {
		s.p50, s.p99 = sorted[(n-1)*50/100], sorted[(n-1)*99/100]
	}
	return s
}

func (s summary) clean() bool { return len(s.complaints) == 0 }

func (s summary) String() string {
	return fmt.Sprintf("demo: events=%d lost=%d duplicates=%d out_of_order=%d p50_ms=%.1f p99_ms=%.1f",
		s.events, s.lost, s.duplicates, s.disorder, millis(s.p50), millis(s.p99))
}
