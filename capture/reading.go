package capture

import (
	"context"
	"errors"

	"github.com/walrelay/walrelay/event"
)

// Orders reports whether the source can say what is still to come: while it follows a
// log. A table cannot.
func (c *Capture) Orders() bool { return !c.opt.polls() }

// Reading looks at the server's clock, for the order of stamps; it satisfies
// relay.Feed. It is for one goroutine.
func (c *Capture) Reading(ctx context.Context) (event.Reading, error) {
	if c.Gear() != GearLog {
		return event.Reading{}, errNoLog
	}
	if c.clock == nil {
		c.clock = c.opt.Log.Clock()
	}
	return c.clock.Read(ctx)
}

var errNoLog = errors.New("the source does not follow its log")
