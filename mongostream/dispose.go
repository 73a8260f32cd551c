package mongostream

import (
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// Error codes that are more than their class.
const (
	codeInvalidToken  = 260
	codeFatal         = 280 // the token's event was not found
	codeHistoryLost   = 286
	codeCappedLost    = 136 // the cursor fell behind the oplog
	codeTooLarge      = 10334
	codeIllegalToken  = 50811
	codeNoMatchingDoc = 47
)

func hasCode(err error, code int) bool {
	var s mongo.ServerError
	return errors.As(err, &s) && s.HasErrorCode(code)
}

// byTimeInstead: the position may be good although its event is not found, because
// another pipeline left it out or a server numbers its tokens otherwise. Its time
// is as good a place, when what comes at or below the token is passed over.
func byTimeInstead(err error) bool { return hasCode(err, codeFatal) }

// disposal is what becomes of a stream that ended with an error.
type disposal uint8

const (
	disposeHalt   disposal = iota
	disposeReopen          // at the same place, after a pause
	disposeByTime          // at the same place, named by its time
)

// attempts is what failed since the position moved last.
type attempts struct {
	failures int  // sessions that ended with an error
	byTime   bool // the place was named by its time
	tooLarge bool // an event was too large for an answer
	capped   bool // the cursor fell behind the oplog once
}

// dispose is the table of errors (Class is what Classify found).
func (a *attempts) dispose(err error) disposal {
	a.failures++
	switch {
	case byTimeInstead(err) && !a.byTime:
		a.byTime = true
		return disposeByTime
	case hasCode(err, codeTooLarge) && !a.tooLarge:
		// What lies before it in the answer was not sent: it is asked for again, one by one.
		a.tooLarge = true
		return disposeReopen
	case hasCode(err, codeCappedLost) && !a.capped:
		// An open cursor was overtaken. What it had not read may still be there for a new one; if not, that one
		// says so.
		a.capped = true
		return disposeReopen
	case event.ClassOf(err) == event.Retry:
		return disposeReopen
	}
	return disposeHalt
}

// stuckAfter sessions that end at one place without an event, something is wrong with the place.
const stuckAfter = 5

func (a *attempts) stuck() bool { return a.failures >= stuckAfter }
