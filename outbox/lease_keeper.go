package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/walrelay/walrelay/event"
)

// Run keeps the leases until ctx ends. It returns early only when a renewal fails
// for good: View says why.
func (t *Tenancy) Run(ctx context.Context) {
	fault := backoff{min: t.ttl / 20, max: t.ttl / 5}
	for {
		again, err := t.renew(ctx)
		if t.obs.Beat != nil {
			t.obs.Beat()
		}
		wait := t.ttl / 3
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && event.ClassOf(err) != event.Retry:
			t.mu.Lock()
			t.failure = err
			t.changeLocked()
			t.mu.Unlock()
			return
		case err != nil:
			wait = fault.next()
			t.warn(event.Condition{
				What:   fmt.Sprintf("the leases of this source cannot be renewed: %v", err),
				Remedy: "nothing is claimed once they run out; look at the database",
				Anchor: AnchorLeases,
			})
		default:
			if fault.n > 0 {
				fault.n = 0
				t.warn(event.Condition{})
			}
			if again {
				wait = t.ttl / 10
			}
		}
		if !t.pauseRun(ctx, wait) {
			return
		}
	}
}

// pauseRun waits, drops the leases in the moment when they run out, and ends early
// when something was asked for; false when ctx ended.
func (t *Tenancy) pauseRun(ctx context.Context, d time.Duration) bool {
	next := time.NewTimer(d)
	defer next.Stop()
	end := time.NewTimer(time.Duration(t.until.Load()) - time.Since(t.base))
	defer end.Stop()
	for {
		select {
		case <-next.C:
			return true
		case <-t.poke:
			return true
		case <-end.C:
			t.mu.Lock()
			t.expireLocked()
			t.mu.Unlock()
		case <-ctx.Done():
			return false
		}
	}
}

// renew is one renewal. Who joins asks for no shard yet: first to be counted, then to
// know the fair share. again: there is something to be had, look again soon.
func (t *Tenancy) renew(ctx context.Context) (again bool, err error) {
	t.mu.Lock()
	t.expireLocked()
	idle := t.under >= t.leftAt
	if t.want == WantNone && (len(t.own) == 0 || idle) {
		t.mu.Unlock()
		return false, t.leave(ctx)
	}
	req := LeaseRequest{Of: t.of, Want: t.shareLocked(), All: t.want == WantAll, Reclaimed: slices.Clone(t.reclaimed)}
	joining := t.want == WantShare && !t.joined
	if joining {
		req.Want = 0
	}
	if len(t.leaving) > 0 && idle {
		req.GiveBack = t.leaving
	}
	t.mu.Unlock()

	began := time.Now()
	// An answer that comes later is worth nothing.
	call, cancel := context.WithTimeout(ctx, t.ttl/2)
	defer cancel()
	state, err := t.leases.Renew(call, t.holder, t.ttl, req)
	if err != nil {
		if ctx.Err() == nil && call.Err() != nil {
			err = &event.Error{Class: event.Retry, What: fmt.Sprintf("a renewal of the leases took longer than %v", t.ttl/2), Anchor: AnchorLeases, Cause: err}
		}
		return false, err
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked()
	lost, same := 0, slices.Equal(t.own, state.Own)
	for _, s := range t.own {
		if !slices.Contains(state.Own, s) && !slices.Contains(req.GiveBack, s) {
			lost++
		}
	}
	t.own, t.members, t.rank, t.others = state.Own, max(1, state.Members), state.Rank, state.Others
	t.reclaimed = slices.Delete(t.reclaimed, 0, len(req.Reclaimed))
	t.tenures = slices.DeleteFunc(append(t.tenures, state.Tenures...), func(x Tenure) bool { return !slices.Contains(t.own, x.Shard) })
	t.until.Store(int64(began.Sub(t.base) + t.ttl - margin(t.ttl)))
	moved := t.leaveLocked()
	switch {
	case lost > 0:
		t.lostLocked(lost)
	case !same || moved:
		t.changeLocked()
	}
	if moved && len(t.leaving) > 0 {
		t.leftAt = t.version
	}
	t.joined = t.want == WantShare
	again = joining || len(t.own) < t.shareLocked() || len(t.leaving) > 0
	if joining {
		signal(t.poke)
	}
	return again, nil
}

// leave gives everything up, once.
func (t *Tenancy) leave(ctx context.Context) error {
	t.mu.Lock()
	in := t.joined || len(t.own) > 0
	t.mu.Unlock()
	if !in {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, t.ttl/2)
	defer cancel()
	if err := t.leases.Release(call, t.holder); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joined, t.own, t.leaving, t.others = false, nil, nil, nil
	t.changeLocked()
	return nil
}

// margin is how much earlier than the database this process lets go: for the
// records that are just being sent.
func margin(ttl time.Duration) time.Duration { return min(ttl/5, time.Second) }

// shareLocked is how many shards this process should hold. What is left over when
// all have the same goes to the first by name, one each: with five members every one
// of them has a part of sixteen.
func (t *Tenancy) shareLocked() int {
	switch {
	case t.want == WantNone:
		return 0
	case t.want == WantAll || t.members < 2:
		return t.of
	}
	share := t.of / t.members
	if t.rank < t.of%t.members {
		share++
	}
	return share
}

// leaveLocked chooses the shards to be given back: the highest of those beyond the
// share, and of who wants all and lacks the first, everything. It answers whether they
// are others than before.
func (t *Tenancy) leaveLocked() bool {
	before := t.leaving
	t.leaving = nil
	if t.want == WantAll && len(t.own) > 0 && t.own[0] != 0 {
		t.leaving = slices.Clone(t.own)
	} else if over := len(t.own) - t.shareLocked(); over > 0 {
		t.leaving = slices.Clone(t.own[len(t.own)-over:])
	}
	return !slices.Equal(before, t.leaving)
}

func (t *Tenancy) warn(c event.Condition) {
	if t.obs.Warning != nil {
		t.obs.Warning("leases", c)
	}
}
