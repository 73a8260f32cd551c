package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/inbox"
)

var (
	errVictim = errors.New("chosen as victim")
	errBusy   = errors.New("the mark is held")
	errOther  = errors.New("something else")
)

func attempts(most int, patience time.Duration) inbox.Attempts {
	return inbox.Attempts{
		Most: most, Patience: patience,
		Victim: func(err error) bool { return errors.Is(err, errVictim) || errors.Is(err, errBusy) },
		Busy:   func(err error) bool { return errors.Is(err, errBusy) },
	}
}

// script answers one error after the other, then success.
func script(errs ...error) (run func(context.Context, inbox.Message) (inbox.Outcome, error), runs *int) {
	runs = new(int)
	return func(context.Context, inbox.Message) (inbox.Outcome, error) {
		if *runs++; *runs <= len(errs) {
			return inbox.Unsettled, errs[*runs-1]
		}
		return inbox.Handled, nil
	}, runs
}

func TestVictimIsRunAgainAsOftenAsAllowedAndNothingElseIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errs []error
		runs int
		err  error
	}{
		"none":                {nil, 1, nil},
		"two":                 {[]error{errVictim, errVictim}, 3, nil},
		"too many":            {[]error{errVictim, errVictim, errVictim}, 3, errVictim},
		"another":             {[]error{errOther}, 1, errOther},
		"another after one":   {[]error{errVictim, errOther}, 2, errOther},
		"busy does not count": {[]error{errBusy, errBusy, errVictim, errBusy, errVictim}, 6, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newInbox(t, inbox.Options{})
				run, runs := script(c.errs...)
				outcome, err := inbox.Process(t.Context(), in, kafka(1, "k", "forze_event_id", someID), attempts(3, time.Minute), run)
				if *runs != c.runs || !errors.Is(err, c.err) || (err == nil) != (outcome == inbox.Handled) {
					t.Errorf("%s, %v after %d runs, want %v after %d", outcome, err, *runs, c.err, c.runs)
				}
				if err != nil && !strings.Contains(err.Error(), someID) {
					t.Errorf("%v does not name the message", err)
				}
			})
		})
	}
}

// A mark that is never let go: the pauses grow to a second, and the end comes when the
// patience and the runs are over.
func TestPatienceHasAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, begun := newInbox(t, inbox.Options{}), time.Now()
		runs := 0
		_, err := inbox.Process(t.Context(), in, kafka(1, "k", "forze_event_id", someID), attempts(2, time.Minute), func(context.Context, inbox.Message) (inbox.Outcome, error) {
			runs++
			return inbox.Unsettled, errBusy
		})
		if took := time.Since(begun); !errors.Is(err, errBusy) || took < time.Minute || took > time.Minute+3*time.Second || runs < 60 || runs > 140 {
			t.Errorf("%v after %d runs and %s", err, runs, took)
		}
	})
}

func TestCancelledPauseEndsAtOnceAndKeepsTheCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, begun := newInbox(t, inbox.Options{}), time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errOther)
		defer cancel()
		_, err := inbox.Process(ctx, in, kafka(1, "k", "forze_event_id", someID), attempts(2, time.Minute), func(context.Context, inbox.Message) (inbox.Outcome, error) {
			return inbox.Unsettled, errBusy
		})
		if !errors.Is(err, errBusy) || !errors.Is(err, errOther) || time.Since(begun) != 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

func TestForgetStopsAtAPieceThatIsNotFullAndAtItsBound(t *testing.T) {
	t.Parallel()
	in := newInbox(t, inbox.Options{})
	for name, c := range map[string]struct {
		there, want int64
		calls       int
	}{"few": {7, 7, 1}, "just full": {20, 20, 3}, "more than one call may": {1000, 30, 3}} {
		there, calls := c.there, 0
		n, err := inbox.Forget(in, inbox.Retention{Keep: time.Hour, Batch: 10, Batches: 3}, func(keep time.Duration, most int) (int64, error) {
			calls++
			gone := min(there, int64(most))
			there -= gone
			return gone, nil
		})
		if n != c.want || calls != c.calls || err != nil {
			t.Errorf("%s: %d in %d calls, %v", name, n, calls, err)
		}
	}
	n, err := inbox.Forget(in, inbox.Retention{Keep: time.Hour}, func(time.Duration, int) (int64, error) { return 3, errOther })
	if n != 3 || !errors.Is(err, errOther) {
		t.Errorf("%d, %v", n, err)
	}
}
