package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

// drainLook is the time between two looks.
const drainLook = 300 * time.Millisecond

const anchorDrain event.Anchor = "drain-incomplete"

func (a *app) drainCommand() *cobra.Command {
	var source string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "drain", Short: "wait until all that is committed now is published, before an upgrade for instance", Args: cobra.NoArgs,
		Long: `drain waits until the relay that runs has published everything that was committed
when drain began: until the position is confirmed, or where the table is polled until no row of then
is pending or in work. What waits behind a parked event does not count. It exits 5 when that takes too long.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.drain(cmd.Context(), source, timeout) },
	}
	cmd.Flags().StringVar(&source, "source", "", "name of the source (default: all)")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

// draining is one source that is waited for.
type draining interface {
	// left says what is missing, empty when nothing is; done in a sentence.
	left(ctx context.Context) (missing, done string, err error)
	close(ctx context.Context)
}

func (a *app) drain(ctx context.Context, source string, timeout time.Duration) error {
	if timeout <= 0 {
		return usageError("drain: --timeout is %s, want more than none", timeout)
	}
	c, _, err := a.load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	waiting := map[string]draining{}
	var names []string
	defer func() {
		for _, d := range waiting {
			d.close(context.WithoutCancel(ctx))
		}
	}()
	// The moment is the same for all sources, before any is waited for.
	for _, s := range c.Sources {
		if source != "" && source != s.Key {
			continue
		}
		d, err := startDraining(ctx, c, s.Key)
		if err != nil {
			return err
		}
		waiting[s.Key] = d
		names = append(names, s.Key)
	}
	if len(names) == 0 {
		return usageError("there is no source %q in the configuration", source)
	}
	said := map[string]string{}
	for {
		for _, name := range names {
			d := waiting[name]
			if d == nil {
				continue
			}
			missing, done, err := d.left(ctx)
			switch {
			case err != nil && event.ClassOf(err) != event.Retry && ctx.Err() == nil:
				return err
			case err != nil:
				if said[name] == "" || ctx.Err() == nil {
					said[name] = err.Error()
				}
			case missing != "":
				said[name] = missing
			default:
				fmt.Fprintf(a.out, "%s: drained, %s\n", name, done)
				d.close(ctx)
				delete(waiting, name)
			}
		}
		if len(waiting) == 0 {
			return nil
		}
		select {
		case <-time.After(drainLook):
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return context.Cause(ctx)
			}
			var lines []string
			for _, name := range names {
				if waiting[name] != nil {
					lines = append(lines, "source "+name+": "+said[name])
				}
			}
			return &event.Error{
				Class: event.Halt, Fault: event.FaultUnacknowledged, Anchor: anchorDrain,
				What:   fmt.Sprintf("not drained after %s: %s", timeout, strings.Join(lines, "; ")),
				Remedy: "see with 'walrelay status' whether the relay runs and is ready, then drain again",
			}
		}
	}
}

func startDraining(ctx context.Context, c *config.Config, name string) (draining, error) {
	if c.IsMongo(name) && c.Capture(name) != slot.CapturePoll {
		return startStreamDrain(ctx, c, name)
	}
	opt, err := c.SlotOptions(name)
	if err != nil {
		return nil, err
	}
	if c.Capture(name) == slot.CapturePoll {
		return startTableDrain(ctx, c, name)
	}
	d := &logDrain{opt: opt}
	if d.conn, err = slot.Connect(ctx, opt); err != nil {
		return nil, err
	}
	if d.end, err = slot.LogEnd(ctx, d.conn); err != nil {
		d.close(ctx)
		return nil, err
	}
	if opt.Capture == slot.CaptureAuto {
		// While the slot cannot be used the table is read instead: either will do.
		if d.table, err = startTableDrain(ctx, c, name); err != nil {
			d.close(ctx)
			return nil, err
		}
	}
	return d, nil
}

// logDrain waits for the slot's position. A relay that has nothing to do follows the
// log in strides: where the position rests, it is pushed on.
type logDrain struct {
	opt   slot.Options
	conn  *pgx.Conn
	end   event.LSN
	table draining // nil, or waits for the table where there is no slot

	at     event.LSN // the position that was seen last, and since when
	since  time.Time
	pushes int
}

// restsFor is how long a position rests before it is pushed on, mostPushes how often
// that is done: a relay that does not move then has another reason.
const (
	restsFor   = 2 * time.Second
	mostPushes = 3
)

func (d *logDrain) left(ctx context.Context) (missing, done string, err error) {
	if d.conn.IsClosed() {
		if d.conn, err = slot.Connect(ctx, d.opt); err != nil {
			return "", "", err
		}
	}
	r, err := slot.ReadSlot(ctx, d.conn, d.opt.Slot)
	if err != nil {
		if d.table != nil {
			return d.table.left(ctx)
		}
		return "", "", err
	}
	if r.ConfirmedLSN >= d.end {
		return "", fmt.Sprintf("everything up to %s is confirmed", d.end), nil
	}
	missing = fmt.Sprintf("slot %s confirms %s, %d bytes before %s, where the log ended", d.opt.Slot, r.ConfirmedLSN, d.end.Sub(r.ConfirmedLSN), d.end)
	if !r.Active {
		if d.table != nil {
			return d.table.left(ctx)
		}
		missing += "; no relay is connected to it"
	}
	switch {
	case r.ConfirmedLSN != d.at || !r.Active:
		d.at, d.since = r.ConfirmedLSN, time.Now()
	case time.Since(d.since) > restsFor && d.pushes < mostPushes:
		d.since = time.Now().Add(4 * restsFor)
		d.pushes++
		err = slot.PushLog(ctx, d.conn)
	}
	return missing, "", err
}

func (d *logDrain) close(ctx context.Context) {
	if d.conn != nil {
		_ = d.conn.Close(context.WithoutCancel(ctx))
	}
	if d.table != nil {
		d.table.close(ctx)
	}
}

// tableDrain waits for the rows that were there.
type tableDrain struct {
	db       store
	backlogs []backlog
}

func startTableDrain(ctx context.Context, c *config.Config, name string) (draining, error) {
	oopt, err := c.OutboxOptions(name)
	if err != nil {
		return nil, err
	}
	d := &tableDrain{}
	if d.db, err = openStore(c, name); err != nil {
		return nil, err
	}
	tables, err := d.db.Tables(ctx)
	if err != nil {
		d.close(ctx)
		return nil, err
	}
	for _, t := range tables {
		b, err := d.db.Backlog(ctx, t, oopt.Loose)
		if err != nil {
			d.close(ctx)
			return nil, err
		}
		d.backlogs = append(d.backlogs, b)
	}
	return d, nil
}

func (d *tableDrain) left(ctx context.Context) (missing, done string, err error) {
	held, err := d.db.Parking().Held(ctx)
	if err != nil {
		return "", "", err
	}
	var keys []string
	for _, h := range held {
		if h.Parked {
			keys = append(keys, h.Key)
		}
	}
	n := 0
	for _, b := range d.backlogs {
		left, err := b.Left(ctx, keys)
		if err != nil {
			return "", "", err
		}
		n += left
	}
	if n > 0 {
		return plural(n, "row is", "rows are") + " not published", "", nil
	}
	done = "every row that was there is published"
	if len(keys) > 0 {
		done += fmt.Sprintf("; %s held by parked events, what waits behind is not counted", plural(len(keys), "key is", "keys are"))
	}
	return "", done, nil
}

func (d *tableDrain) close(ctx context.Context) { _ = d.db.Close(context.WithoutCancel(ctx)) }
