package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/walrelay/walrelay/inbox"
)

const (
	defaultRuns = 5
	firstPause  = 10 * time.Millisecond
	// longestPause is short: the partition waits behind the record meanwhile.
	longestPause = time.Second
)

// again runs a transaction until it ends other than by Postgres's choice of a
// victim, at most so many times.
func again(ctx context.Context, most int, run func() (inbox.Outcome, error)) (outcome inbox.Outcome, runs int, err error) {
	pause := firstPause
	for runs = 1; ; runs++ {
		outcome, err = run()
		if err == nil || !victim(err) || runs == most {
			return outcome, runs, err
		}
		// Half of it is left to chance, so that two that met do not meet again.
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return inbox.Unsettled, runs, errors.Join(err, context.Cause(ctx))
		}
		pause = min(2*pause, longestPause)
	}
}

// victim reports whether Postgres gave the transaction up only because of what ran
// beside it: serialization_failure and deadlock_detected (appendix A of its manual).
func victim(err error) bool {
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) {
		return false
	}
	state := coded.SQLState()
	return state == "40001" || state == "40P01"
}
