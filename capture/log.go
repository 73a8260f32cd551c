package capture

import (
	"context"
	"fmt"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
)

// openLog opens the stream, with the Scribe before it where outcomes are written
// back or events can be put aside.
func (c *Capture) openLog() (relay.Source, error) {
	// In place of the log there is something else to do while it cannot be read.
	stream, err := c.opt.Log.Open(c.opt.ExitOnHalt || c.opt.changesOver(), c.obs.State, c.obs.Warning)
	if err != nil {
		return nil, err
	}
	sopt := outbox.ScribeOptions{Options: c.opt.Outbox, Marks: c.opt.Marks}
	if c.opt.Marks && !c.opt.NoLookUp {
		sopt.StartLine = c.opt.Log.End
	}
	sobs := c.obs.Scribe
	sobs.Warning = c.warn
	tables := c.tables
	if c.delivered != nil {
		tables = make([]outbox.Table, len(c.tables))
		for i, t := range c.tables {
			tables[i] = &recalling{t, c.delivered}
		}
		c.delivered = nil // it goes with this scribe
	}
	scribe := outbox.NewScribe(stream, tables, c.opt.Parking, c.gate, sopt, sobs)
	c.mu.Lock()
	c.stream, c.scribe = stream, scribe
	why := c.next.why
	c.next = plan{gear: GearDeciding} // whatever ends it, look anew
	c.mu.Unlock()
	c.enter(GearLog, scribe, why)
	return &logSource{Scribe: scribe, c: c}, nil
}

// logSource turns errors that another gear can deal with into a change of gear.
type logSource struct {
	*outbox.Scribe
	c *Capture
}

func (s *logSource) Next(ctx context.Context) (*event.Batch, error) {
	batch, err := s.Scribe.Next(ctx)
	if err == nil || event.ClassOf(err) != event.Halt {
		return batch, err
	}
	if s.c.opt.catchesUp() && isGap(err) || s.c.opt.changesOver() && isPrecondition(err) {
		// What is under way is acknowledged and marked first; then the server is asked.
		s.c.state(event.StateDisconnected, event.ConditionOf(err))
		return nil, fmt.Errorf("%w: %w", event.ErrTurn, err)
	}
	return batch, err
}
