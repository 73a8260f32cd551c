package outboxfake

import (
	"context"
	"slices"
	"time"

	"github.com/walrelay/walrelay/outbox"
)

type lease struct {
	holder         string
	since, expires time.Time
}

// Leases are the leases of a DB as one process sees them.
type Leases struct {
	*DB
	// Before, when set, is asked before each statement; its error is the statement's.
	Before func(op string) error
}

// Renew is one renewal.
func (l *Leases) Renew(ctx context.Context, holder string, ttl time.Duration, req outbox.LeaseRequest) (s outbox.LeaseState, err error) {
	if ctx.Err() != nil {
		return s, context.Cause(ctx)
	}
	if l.Before != nil {
		if err := l.Before("renew"); err != nil {
			return s, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	own := 0
	for _, t := range req.Reclaimed {
		if x := l.shards[t.Shard]; x != nil && x.holder == holder && t.From == x.since.Format(time.RFC3339Nano) {
			x.since, _ = time.Parse(time.RFC3339Nano, t.Until)
		}
	}
	for n, x := range l.shards {
		switch {
		case x.holder != holder:
		case slices.Contains(req.GiveBack, n):
			delete(l.shards, n)
		default:
			x.expires = now.Add(ttl)
			own++
		}
	}
	for n := range req.Of {
		x := l.shards[n]
		if x != nil && x.holder == holder || own >= req.Want || x != nil && x.expires.After(now) || slices.Contains(req.GiveBack, n) {
			continue
		}
		if first := l.shards[0]; req.All && n > 0 && (first == nil || first.holder != holder) {
			break
		}
		since := now
		if x != nil {
			since = x.since
			s.Tenures = append(s.Tenures, outbox.Tenure{
				Shard: n, From: x.since.Format(time.RFC3339Nano), Until: x.expires.Format(time.RFC3339Nano),
			})
		}
		l.shards[n] = &lease{holder, since, now.Add(ttl)}
		own++
	}
	l.alive[holder] = now.Add(ttl)
	if first := l.shards[0]; req.All && (first == nil || first.holder != holder) {
		delete(l.alive, holder)
	}
	for name, until := range l.alive {
		if until.After(now) {
			s.Members++
			if name < holder {
				s.Rank++
			}
		}
	}
	for n := range req.Of {
		switch x := l.shards[n]; {
		case x == nil:
		case x.holder == holder:
			s.Own = append(s.Own, n)
		case x.expires.After(now) && !slices.Contains(s.Others, x.holder):
			s.Others = append(s.Others, x.holder)
		}
	}
	return s, nil
}

// Release gives everything up.
func (l *Leases) Release(_ context.Context, holder string) error {
	if l.Before != nil {
		if err := l.Before("release"); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, x := range l.shards {
		if x.holder == holder {
			delete(l.shards, n)
		}
	}
	delete(l.alive, holder)
	return nil
}

// Holders answers who holds which shard now.
func (db *DB) Holders() map[int]string {
	db.mu.Lock()
	defer db.mu.Unlock()
	held := map[int]string{}
	for n, x := range db.shards {
		if x.expires.After(time.Now()) {
			held[n] = x.holder
		}
	}
	return held
}

// Hold gives shards to a holder, as if it had taken them now.
func (db *DB) Hold(holder string, ttl time.Duration, shards ...int) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, n := range shards {
		db.shards[n] = &lease{holder, time.Now(), time.Now().Add(ttl)}
	}
}
