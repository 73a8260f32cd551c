package ops

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/event"
)

// Backlog are the gauges of one outbox table.
type Backlog struct {
	// OldestPending is the age of the oldest row that is not published; zero: none.
	OldestPending time.Duration
	// Counts of rows, up to Limit and that value where there are more. Retrying are those
	// among the pending that were tried before.
	Pending, Retrying, Processing, Failed int64
	Limit                                 int64
	// DeadTuples is the server's estimate.
	DeadTuples int64
}

// table is what is known of a source's outbox tables: of what is claimed, marked,
// put aside and removed.
type table struct {
	claims, marks latency

	claimed, lostClaims, lostShards, retries, given, reclaimed atomic.Int64
	markedPending, markedForeign, markedSettled, markedAbsent  atomic.Int64
	skipped, retainedRows, retainedPartitions, heldKeys        atomic.Int64
	parked, behind, retrying, shardsOwn, shardsOf, members     atomic.Int64

	parkedKnown, shardsKnown, retains atomic.Bool

	mu struct {
		sync.Mutex
		gear     string
		why      string
		backlogs map[string]Backlog // by relation
		warnings map[string]event.Condition
		order    []string // of the warnings
	}
}

// Gear says how the source is read now (log, poll, catch_up, deciding), and why
// if that is not what one would expect.
func (s *Source) Gear(gear, why string) {
	t := &s.table
	t.mu.Lock()
	changed := t.mu.gear != gear
	t.mu.gear, t.mu.why = gear, why
	t.mu.Unlock()
	if changed {
		s.ops.facts.Gear(s.name, gear, why)
	}
}

func (s *Source) gear() (gear, why string) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	return s.table.mu.gear, s.table.mu.why
}

// Claimed counts the rows of one claim, which may be none, and the time it took.
func (s *Source) Claimed(rows int, took time.Duration) {
	s.table.claims.observe(took, 1)
	s.table.claimed.Add(int64(rows))
}

// ClaimsLost counts outcomes that hit nothing: the claim went to somebody else.
func (s *Source) ClaimsLost(rows int) { s.table.lostClaims.Add(int64(rows)) }

// Retried counts rows that wait for another attempt; GivenUp those that get none.
func (s *Source) Retried(rows int) { s.table.retries.Add(int64(rows)) }

// GivenUp counts rows that were tried for the last time.
func (s *Source) GivenUp(rows int) { s.table.given.Add(int64(rows)) }

// Reclaimed counts abandoned claims of others that were given back.
func (s *Source) Reclaimed(rows int) { s.table.reclaimed.Add(int64(rows)) }

// Marked counts marks by what they hit, and the time that they took together.
func (s *Source) Marked(pending, foreign, settled, absent int, took time.Duration) {
	t := &s.table
	t.marks.observe(took, 1)
	t.markedPending.Add(int64(pending))
	t.markedForeign.Add(int64(foreign))
	t.markedSettled.Add(int64(settled))
	t.markedAbsent.Add(int64(absent))
}

// Skipped counts events that the database showed to be delivered or parked already, after a restart.
func (s *Source) Skipped(n int) { s.table.skipped.Add(int64(n)) }

// HeldKeys is the number of keys whose later events wait.
func (s *Source) HeldKeys(n int) { s.table.heldKeys.Store(int64(n)) }

// Parked is the number of events that wait for a human, of those that wait behind
// them, and of those that were told to go again.
func (s *Source) Parked(parked, behind, retrying int64) {
	t := &s.table
	t.parked.Store(parked)
	t.behind.Store(behind)
	t.retrying.Store(retrying)
	t.parkedKnown.Store(true)
}

// Shards: this process holds own of all shards, which so many members share.
func (s *Source) Shards(own, of, members int) {
	t := &s.table
	t.shardsOwn.Store(int64(own))
	t.shardsOf.Store(int64(of))
	t.members.Store(int64(members))
	t.shardsKnown.Store(true)
}

// ShardsLost counts shards that went to somebody else, or could not be renewed in time.
func (s *Source) ShardsLost(n int) { s.table.lostShards.Add(int64(n)) }

// Backlog takes the gauges of one table. A source may have several: they are added up.
func (s *Source) Backlog(relation string, b Backlog) {
	t := &s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.backlogs == nil {
		t.mu.backlogs = map[string]Backlog{}
	}
	t.mu.backlogs[relation] = b
}

// backlog is the sum over the tables, and the greatest age.
func (s *Source) backlog() (sum Backlog, known bool) {
	t := &s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.mu.backlogs {
		sum.OldestPending = max(sum.OldestPending, b.OldestPending)
		sum.Pending += b.Pending
		sum.Retrying += b.Retrying
		sum.Processing += b.Processing
		sum.Failed += b.Failed
		sum.DeadTuples += b.DeadTuples
		sum.Limit = max(sum.Limit, b.Limit)
	}
	return sum, len(t.mu.backlogs) > 0
}

// Retained counts what one round of retention removed, which may be nothing.
func (s *Source) Retained(rows int64, partitions int) {
	s.table.retains.Store(true)
	s.table.retainedRows.Add(rows)
	s.table.retainedPartitions.Add(int64(partitions))
}

// Warning shows something that an operator should know of and that does not stop
// events: a foreign poller, a renewal that fails. An empty What takes it back. The
// log gets a line when a warning comes or goes.
func (s *Source) Warning(key string, c event.Condition) {
	t := &s.table
	t.mu.Lock()
	_, had := t.mu.warnings[key]
	switch {
	case c.What != "":
		if t.mu.warnings == nil {
			t.mu.warnings = map[string]event.Condition{}
		}
		if !had {
			t.mu.order = append(t.mu.order, key)
		}
		t.mu.warnings[key] = c
	case had:
		delete(t.mu.warnings, key)
		for i, k := range t.mu.order {
			if k == key {
				t.mu.order = append(t.mu.order[:i], t.mu.order[i+1:]...)
				break
			}
		}
	}
	t.mu.Unlock()
	if had != (c.What != "") {
		s.ops.facts.SourceWarning(s.name, key, c)
	}
}

// standing are the warnings, the oldest first.
func (s *Source) standing() (list []event.Condition) {
	t := &s.table
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range t.mu.order {
		list = append(list, s.ops.redactCondition(t.mu.warnings[key]))
	}
	return list
}
