package capture

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

// Slot is the log of a Postgres database, read through a replication slot.
type Slot struct {
	opt slot.Options
	obs slot.Observer
}

// OverSlot prepares the log; nothing is connected yet. What capture has to say of it by
// itself, its state and its warnings, is not taken from obs.
func OverSlot(opt slot.Options, obs slot.Observer) *Slot { return &Slot{opt: opt, obs: obs} }

// Source is the name in the configuration.
func (l *Slot) Source() string { return l.opt.Source }

// Open opens a stream.
func (l *Slot) Open(haltEarly bool, state func(event.State, event.Condition), warning func(string, event.Condition)) (Stream, error) {
	opt, obs := l.opt, l.obs
	opt.HaltOnPrecondition = haltEarly
	obs.State, obs.Warning = state, warning
	stream, err := slot.Open(opt, obs)
	if err != nil {
		return nil, err // not a nil *slot.Stream in an interface
	}
	return stream, nil
}

// Peek opens a stream that writes no marker.
func (l *Slot) Peek(state func(event.State, event.Condition)) (Stream, error) {
	opt := l.opt
	opt.Bookkeeping, opt.HaltOnPrecondition = slot.NoBookkeeping, true
	stream, err := slot.Open(opt, slot.Observer{State: state})
	if err != nil {
		return nil, err
	}
	return stream, nil
}

// Assess looks at the slot and the marker.
func (l *Slot) Assess(ctx context.Context) (phase event.Phase, active bool, err error) {
	err = l.with(ctx, func(conn *pgx.Conn) error {
		marker, reading, err := slot.Assess(ctx, conn, l.opt)
		if marker != nil {
			phase = marker.Phase
		}
		active = reading
		return err
	})
	return phase, active, err
}

// Probe opens a replication connection and closes it.
func (l *Slot) Probe(ctx context.Context) error { return slot.ProbeReplication(ctx, l.opt) }

// Renew makes the slot anew.
func (l *Slot) Renew(ctx context.Context, why error) (lost event.Condition, err error) {
	err = l.with(ctx, func(conn *pgx.Conn) error {
		_, err := slot.ReplaceSlot(ctx, conn, l.opt)
		return err
	})
	if err == nil && len(l.opt.Messages) > 0 {
		lost = event.Condition{
			What:   fmt.Sprintf("logical messages that were emitted before slot %s was made anew are not in the table and were not published: %v", l.opt.Slot, why),
			Remedy: "emit them again, or compare with what their writers know",
			Anchor: "messages-gap",
		}
	}
	return lost, err
}

// NotePolling writes the marker.
func (l *Slot) NotePolling(ctx context.Context) error {
	return l.with(ctx, func(conn *pgx.Conn) error { return slot.MarkPolled(ctx, conn, l.opt) })
}

// End is the insert position.
func (l *Slot) End(ctx context.Context) (end event.Position, err error) {
	err = l.with(ctx, func(conn *pgx.Conn) error {
		lsn, err := slot.LogEnd(ctx, conn)
		end = event.AtLSN(lsn)
		return err
	})
	return end, err
}

// Listen waits for notifications of the table's trigger.
func (l *Slot) Listen(ctx context.Context, wake func()) error {
	return slot.Listen(ctx, l.opt, l.opt.NotifyChannel(), wake)
}

// Clock reads the server's clock and its open transactions.
func (l *Slot) Clock() Clock { return slot.NewClock(l.opt) }

// Reconnect passes the error on.
func (l *Slot) Reconnect(err error) {
	if l.obs.Reconnect != nil {
		l.obs.Reconnect(err)
	}
}

// with runs f over a connection of its own.
func (l *Slot) with(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := slot.Connect(ctx, l.opt)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return f(conn)
}
