package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/walrelay/walrelay/event"
)

// claimGrace is how long a claim that was sent may go on after its caller gave up:
// a claim that nobody hears the answer of is found by the reclaim only.
const claimGrace = 3 * time.Second

// heads is whose turn it is, by key, in the claim at hand.
type heads map[string]queue

type queue struct {
	ids     []string
	inOrder bool
}

// claim asks one table for rows. only restricts it to ids. The batch is nil when none can
// be handed out.
func (p *Poller) claim(ctx context.Context, t int, view LeaseView, only []string) (batch *event.Batch, rows int, err error) {
	req := Request{Shards: view.Shards, Only: only, Room: p.turn.rows[:0]}
	p.mu.Lock()
	req.Loose = p.looseLocked()
	req.Limit = min(p.opt.Batch, p.opt.InFlight)
	if only != nil {
		req.Limit = len(only)
	}
	now := time.Now()
	asked := p.excludeLocked(&req, now)
	if !p.traits[t].Claims {
		req.Except = p.underWayLocked(t)
	}
	for id, due := range p.resting[t] {
		if now.Before(due) {
			req.Except = append(req.Except, id)
		} else {
			delete(p.resting[t], id)
		}
	}
	p.mu.Unlock()

	call, cancel := detach(ctx, claimGrace)
	defer cancel()
	began := time.Now()
	claim, err := p.take(call, t, req)
	if err == nil && p.obs.Claimed != nil {
		p.obs.Claimed(len(claim.Rows), time.Since(began))
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.turn.doubt, p.turn.blind = true, true
		return nil, 0, fmt.Errorf("claiming rows of %s: %w", p.tables[t].Relation(), err)
	}
	if claim.Fence != "" && !p.turn.doubt {
		p.turn.fence = claim.Fence
	}
	for i := range claim.Rows {
		_, head := asked[claim.Rows[i].Key]
		p.turn.moving = p.turn.moving || head
	}
	batch = p.handOutLocked(t, claim, view, asked, began)
	p.turn.rows = claim.Rows
	if len(claim.Rows) < req.Limit {
		p.turn.rows, p.turn.batch = nil, event.Batch{} // they would keep the last rows in memory
	}
	if only == nil {
		p.missedLocked(t, asked, claim, len(claim.Rows) == req.Limit, time.Now())
	}
	return batch, len(claim.Rows), nil
}

// excludeLocked fills in the held keys and whose turn it is.
func (p *Poller) excludeLocked(req *Request, now time.Time) heads {
	asked := heads{}
	for key, h := range p.ledger.keys {
		if !h.held() && !h.blocked && !h.shut {
			continue
		}
		req.Held = append(req.Held, key)
		p.turn.moving = p.turn.moving || h.under > 0
		room := req.Limit - len(req.Heads)
		ids, inOrder := h.turn(now, max(room, 1))
		switch {
		case len(ids) == 0:
		case room <= 0:
			p.turn.moving = true // no claim brings more: another one will ask for these
		default:
			asked[key] = queue{ids, inOrder}
			req.Heads = append(req.Heads, ids...)
		}
	}
	if p.gear.Kind == GearSweep {
		for _, key := range p.gate.Keys() {
			if h := p.ledger.keys[key]; (h == nil || !h.held() && !h.blocked) && !p.turn.draining[key] {
				req.Held = append(req.Held, key)
			}
		}
	}
	return asked
}

func (p *Poller) underWayLocked(t int) []string {
	ids := make([]string, 0, len(p.under[t]))
	for id := range p.under[t] {
		ids = append(ids, id)
	}
	return ids
}

// entriesTogether are allocated at a time. One that waits long keeps the others in memory.
const entriesTogether = 64

// handOutLocked makes a batch of the rows that may go now. What changed while the
// claim was under way is looked at again: a row that may not go after all is released.
func (p *Poller) handOutLocked(t int, claim *Claim, view LeaseView, asked heads, at time.Time) *event.Batch {
	losses, loose := p.leases.Losses(), false
	p.cutLocked(losses)
	batch := &event.Batch{Events: slices.Grow(p.turn.batch.Events[:0], len(claim.Rows)), Spans: slices.Grow(p.turn.batch.Spans[:0], len(claim.Rows))}
	var entries []entry
	rows := len(claim.Rows)
	p.count += rows
	if rows > 0 {
		p.versions[view.Version] += rows
	}
	for i := range claim.Rows {
		if len(entries) == 0 {
			entries = make([]entry, min(entriesTogether, rows-i))
		}
		row, e := &claim.Rows[i], &entries[0]
		entries = entries[1:]
		e.id, e.event, e.route, e.table, e.fence, e.claimed = row.ID, row.Event.Fields[event.EventID], row.Route, t, claim.Fence, at
		e.version, e.attempts = view.Version, row.Attempts
		p.under[t][e.id] = e
		may := losses == view.Losses && !p.closing
		if i == 0 || row.Route != claim.Rows[i-1].Route {
			loose = p.isLooseLocked(row.Route)
		}
		if !loose {
			e.key = row.Key
			may = p.enterLocked(e, may, asked, losses)
		}
		if !may {
			p.comeBackLocked(e, e.verdictAtClose())
			continue
		}
		p.handLocked(batch, e, &row.Event)
	}
	p.turn.batch = *batch
	if len(batch.Events) == 0 {
		return nil
	}
	batch.Memory = event.NewMemory(nil)
	return batch
}

// handLocked gives the entry its number and puts its event into the batch.
func (p *Poller) handLocked(batch *event.Batch, e *entry, ev *event.Event) {
	p.waiting.add(e)
	batch.Events = append(batch.Events, *ev)
	batch.Spans = append(batch.Spans, event.Span{Events: 1, Done: true, End: event.AtLSN(event.LSN(p.waiting.next()))})
}

// enterLocked counts a row among those of its key that are under way, and answers
// whether it may go.
func (p *Poller) enterLocked(e *entry, may bool, asked heads, losses uint64) bool {
	h := p.ledger.get(e.key)
	e.state = h
	first := h.under == 0
	if h.under++; first {
		h.losses = losses
	}
	switch {
	case !may || h.blocked || h.shut || h.losses != losses:
		may = false
	case h.held():
		may = (first || h.passing) && p.itsTurnLocked(asked[e.key], e)
		h.passing = h.passing || may
	case p.gear.Kind == GearSweep && p.gate.Held([]byte(e.key)):
		may = p.turn.draining[e.key]
		h.passing = h.passing || may
	}
	if p.gear.Kind == GearSweep {
		p.turn.seen[e.key] = true
	}
	if !may {
		h.shut = true
	}
	return may
}

// itsTurnLocked: the row was asked for, and the one before it came too (somebody may
// have had it locked).
func (p *Poller) itsTurnLocked(q queue, e *entry) bool {
	at := slices.Index(q.ids, e.id)
	return at == 0 || at > 0 && (!q.inOrder || p.under[e.table][q.ids[at-1]] != nil)
}

// cutLocked makes everything that is under way stay behind, as far as it was not sent
// yet, once a shard was lost: which rows were of it is not known here.
func (p *Poller) cutLocked(losses uint64) {
	if p.losses.Load() == losses {
		return
	}
	for _, h := range p.ledger.keys {
		if h.under > 0 && h.losses != losses {
			p.blockLocked(h)
		}
	}
	p.losses.Store(losses)
}

// missedLocked looks at rows that were asked for and did not come although there was
// room, or although one behind them came: they are not due yet, locked, or not there any more. What is
// behind them is not asked for before they are asked for again.
func (p *Poller) missedLocked(t int, asked heads, claim *Claim, full bool, now time.Time) {
	if len(asked) == 0 {
		return
	}
	came := make(map[string]bool, len(claim.Rows))
	for i := range claim.Rows {
		came[claim.Rows[i].ID] = true
	}
	for key, q := range asked {
		h := p.ledger.keys[key]
		if h == nil || len(h.waiting) == 0 || !q.inOrder || q.ids[0] != h.waiting[0].id {
			continue
		}
		w := &h.waiting[0]
		if w.table != t || came[w.id] {
			continue
		}
		if full && !slices.ContainsFunc(q.ids, func(id string) bool { return came[id] }) {
			continue
		}
		w.due = now.Add(p.opt.Interval)
		// The database lists what waits for its next attempt; of what is known here alone
		// nobody would tell that it was deleted.
		if !w.memory || p.fencedLocked(t, w.fence) {
			continue
		}
		if w.misses++; w.misses >= missedMost {
			delete(p.tried, w.id)
			p.ledger.done(h, w.id)
			p.ledger.tidy(key)
			p.openLocked(key)
		}
	}
}

// missedMost is how often a row that only we know of may fail to come before it
// counts as deleted.
const missedMost = 10

// fencedLocked: rows of the claim are under way still.
func (p *Poller) fencedLocked(t int, f Fence) bool {
	if f == "" {
		return false
	}
	for _, e := range p.under[t] {
		if e.fence == f {
			return true
		}
	}
	return false
}

// detach is a context that ends some time after ctx.
func detach(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	call, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if pace(call, nil, grace) {
			cancel(context.Cause(ctx))
		}
	})
	return call, func() {
		stop()
		cancel(nil)
	}
}
