package inbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// DefaultRuns is how often Process runs a transaction that the database gives up,
// unless told otherwise.
const DefaultRuns = 5

const (
	firstPause = 10 * time.Millisecond
	// longestPause is short: the partition waits behind the record meanwhile.
	longestPause = time.Second
)

// Attempts say when a transaction is run again.
type Attempts struct {
	// Most is how often it is run in all, at least once.
	Most int
	// Victim reports whether the database gave the transaction up only because of what
	// ran beside it.
	Victim func(error) bool
	// Busy, where a database does not wait by itself, reports whether another open
	// transaction holds the mark. Such runs do not count, for as long as Patience.
	Busy     func(error) bool
	Patience time.Duration
}

// Process receives a record and has run handle it in a transaction of its own, once or,
// where the database chose that transaction as a victim, several times, with a pause of
// 5 ms to 1 s in between. For those who write the inbox of a database; run begins,
// applies ([Apply]) and commits.
func Process(ctx context.Context, in *Inbox, r Record, a Attempts, run func(context.Context, Message) (Outcome, error)) (Outcome, error) {
	ctx, m, err := in.Receive(ctx, r)
	if err != nil {
		return Unsettled, err
	}
	outcome, runs, err := again(ctx, a, func() (Outcome, error) { return run(ctx, m) })
	if err != nil {
		return Unsettled, fmt.Errorf("message %s of route %s, transaction run %d of at most %d: %w", m.ID, in.Route(), runs, a.Most, err)
	}
	return outcome, nil
}

// again runs a transaction until it ends other than by the database's choice of a
// victim, at most so many times.
func again(ctx context.Context, a Attempts, run func() (Outcome, error)) (outcome Outcome, runs int, err error) {
	pause, patient := firstPause, time.Now().Add(a.Patience)
	for runs = 1; ; {
		outcome, err = run()
		switch {
		case err == nil || !a.Victim(err):
			return outcome, runs, err
		case a.Busy != nil && a.Busy(err) && time.Now().Before(patient):
		case runs == a.Most:
			return outcome, runs, err
		default:
			runs++
		}
		// Half of it is left to chance, so that two that met do not meet again.
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Unsettled, runs, errors.Join(err, context.Cause(ctx))
		}
		pause = min(2*pause, longestPause)
	}
}
