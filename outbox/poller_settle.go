package outbox

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/walrelay/walrelay/event"
)

// settleBatch is the most outcomes of one statement.
const settleBatch = 5_000

// settleAll is the settling goroutine. It alone writes outcomes and renews claims, so
// that an outcome always carries the fence that is in force.
func (p *Poller) settleAll() {
	defer close(p.ended)
	tick := time.NewTicker(min(time.Second, p.opt.ReclaimAfter/12))
	defer tick.Stop()
	for {
		p.mu.Lock()
		done, closing := p.done, p.closing
		p.done = nil
		p.mu.Unlock()
		if left, err := p.write(done); err != nil {
			p.mu.Lock()
			p.done = append(left, p.done...)
			closing = p.closing || p.ctx.Err() != nil
			p.failure = err
			p.mu.Unlock()
			signal(p.wake)
			if closing {
				return
			}
			// One more try when the source is closed; what is in the way may be gone by then.
			for !closing {
				select {
				case <-p.results:
				case <-p.ctx.Done():
				}
				p.mu.Lock()
				closing = p.closing || p.ctx.Err() != nil
				p.mu.Unlock()
			}
			continue
		}
		if p.obs.Beat != nil {
			p.obs.Beat()
		}
		if len(done) > 0 {
			continue
		}
		if closing {
			return
		}
		p.renewClaims(p.ctx)
		select {
		case <-p.results:
		case <-tick.C:
		case <-p.ctx.Done():
			return
		}
	}
}

// write writes the outcomes of entries; left are those that it did not get to.
func (p *Poller) write(done []*entry) (left []*entry, err error) {
	due := make([][]*entry, len(p.tables)+1) // the last: those that owe no statement
	rest := len(p.tables)
	for _, e := range done {
		if e.verdict == giveUp {
			if err := p.insist("parking an event", func(ctx context.Context) error { return p.parking.Park(ctx, *e.aside) }); err != nil {
				return done, err
			}
		}
		switch {
		case e.verdict == forget:
			if err := p.insist("forgetting a published event", func(ctx context.Context) error {
				return p.parking.Done(ctx, []int64{e.whole.ID})
			}); err != nil {
				return done, err
			}
			due[rest] = append(due[rest], e)
		case e.verdict == owed:
			due[e.table] = append(due[e.table], e)
		case e.verdict == giveUp && e.whole == nil && !p.traits[e.table].Retries:
			e.outcome = Outcome{ID: e.id, Verdict: Published} // it is in the store, whole
			due[e.table] = append(due[e.table], e)
		default:
			due[rest] = append(due[rest], e)
		}
	}
	p.settled(due[rest], nil)
	for t, list := range due[:rest] {
		for len(list) > 0 {
			part := list[:min(len(list), settleBatch)]
			lost, err := p.settleSome(t, part)
			if err != nil {
				for _, later := range due[t+1 : rest] {
					list = append(list, later...)
				}
				return list, err
			}
			p.settled(part, lost)
			list = list[len(part):]
		}
	}
	return nil, nil
}

// settleSome writes outcomes of one table, again and again until the table answers.
func (p *Poller) settleSome(t int, part []*entry) (lost map[int]bool, err error) {
	p.outcomes = slices.Grow(p.outcomes[:0], len(part))[:len(part)]
	outcomes := p.outcomes
	for i, e := range part {
		outcomes[i] = e.outcome
		outcomes[i].Fence = e.fence
	}
	var indexes []int
	err = p.insist("writing outcomes to "+p.tables[t].Relation(), func(ctx context.Context) error {
		indexes, err = p.tables[t].Settle(ctx, outcomes)
		return err
	})
	if err != nil {
		return nil, err
	}
	lost = make(map[int]bool, len(indexes))
	for _, i := range indexes {
		lost[i] = true
	}
	return lost, nil
}

// insist repeats a call until it succeeds, fails for good, or the time to close is
// over. The same values are written again, nothing is published again.
func (p *Poller) insist(doing string, f func(context.Context) error) error {
	fault := backoff{min: 50 * time.Millisecond, max: 5 * time.Second}
	for {
		err := f(p.ctx)
		switch {
		case err == nil:
			if fault.n > 0 {
				p.warn("outcomes", event.Condition{})
			}
			return nil
		case p.ctx.Err() != nil:
			return context.Cause(p.ctx)
		case event.ClassOf(err) != event.Retry:
			return fmt.Errorf("%s: %w", doing, err)
		}
		p.warn("outcomes", event.Condition{
			What:   fmt.Sprintf("%s failed: %v", doing, err),
			Remedy: "nothing is published twice for it; claims stop when too many rows wait; look at the database",
			Anchor: AnchorTable,
		})
		if !pace(p.ctx, nil, fault.next()) {
			return context.Cause(p.ctx)
		}
	}
}

// settled takes entries off what is under way; lost are the indexes whose outcome hit nothing.
func (p *Poller) settled(part []*entry, lost map[int]bool) {
	if len(part) == 0 {
		return
	}
	left := 0 // of one version
	var n struct{ published, retried, failed, released, parked, lost int }
	now := time.Now()
	p.mu.Lock()
	for i, e := range part {
		gone := e.lost || len(lost) > 0 && lost[i]
		switch {
		case gone:
			n.lost++
			p.lookSoon = true
		case e.verdict == giveUp || e.remark == asideParked:
			n.parked++
		case e.verdict == forget:
			n.published++
		case e.verdict == keep:
			n.released++
		case e.verdict == owed:
			switch e.outcome.Verdict {
			case Published:
				n.published++
			case Retry:
				n.retried++
			case Failed:
				n.failed++
			default:
				n.released++
			}
		}
		p.closeEntryLocked(e, gone, now)
		if left++; i == len(part)-1 || part[i+1].version != e.version {
			p.leaveVersionLocked(e.version, left)
			p.count -= left
			left = 0
		}
	}
	lowest := p.lowestLocked()
	wanted := p.thirsty || p.lookSoon
	p.thirsty = false
	p.mu.Unlock()
	p.leases.Under(lowest)
	if wanted {
		signal(p.wake)
	}
	if p.obs.Settled != nil {
		p.obs.Settled(n.published, n.retried, n.failed, n.released, n.parked)
	}
	if n.lost > 0 && p.obs.Lost != nil {
		p.obs.Lost(n.lost)
	}
}

// lowestLocked is the lowest lease version under which something is under way.
func (p *Poller) lowestLocked() uint64 {
	lowest := uint64(math.MaxUint64)
	for v := range p.versions {
		lowest = min(lowest, v)
	}
	return lowest
}
