package capture

import (
	"context"
	"time"

	"github.com/walrelay/walrelay/event"
)

// coming reads the log as far as it goes now, for the ids of its rows, and leaves it as it
// is: what a catch-up must leave to the log is known before the first row is claimed.
func (c *Capture) coming(ctx context.Context, each func(relation string, id []byte)) error {
	end, err := c.opt.Log.End(ctx)
	if err != nil {
		return err
	}
	stream, err := c.opt.Log.Peek(func(st event.State, why event.Condition) {
		if st == event.StateStandby || st == event.StateDisconnected {
			c.state(st, why) // somebody has the log, or had it when he died
		}
	})
	if err != nil {
		return err
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = stream.Close(closeCtx) // it told nobody anything
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				stream.Nudge() // a log that is at rest says where it ends only when it is asked
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		batch, err := stream.Next(ctx)
		if err != nil {
			return err
		}
		for i := range batch.Events {
			if id := batch.Events[i].Fields[event.RowID]; id != nil {
				each(batch.Events[i].Relation, id)
			}
		}
		through := false
		for _, span := range batch.Spans {
			through = through || span.Done && span.End.Compare(end) >= 0
		}
		batch.Memory.Release()
		if through {
			c.state(event.StateStreaming, event.Condition{})
			return nil
		}
	}
}
