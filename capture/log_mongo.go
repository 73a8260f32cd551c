package capture

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
)

// ChangeStream is the log of a MongoDB replica set, read through a change stream.
type ChangeStream struct {
	opt mongostream.Options
	obs mongostream.Observer
}

// OverStream prepares the log; nothing is connected yet. What capture has to say of it by
// itself, its state and its warnings, is not taken from obs.
func OverStream(opt mongostream.Options, obs mongostream.Observer) *ChangeStream {
	return &ChangeStream{opt: opt, obs: obs}
}

// Source is the name in the configuration.
func (l *ChangeStream) Source() string { return l.opt.Source }

// Open opens a stream.
func (l *ChangeStream) Open(haltEarly bool, state func(event.State, event.Condition), warning func(string, event.Condition)) (Stream, error) {
	opt, obs := l.opt, l.obs
	opt.HaltOnPrecondition = haltEarly
	obs.State, obs.Warning = state, warning
	return opened(mongostream.Open(opt, obs))
}

// Peek opens a stream that does not take the source.
func (l *ChangeStream) Peek(state func(event.State, event.Condition)) (Stream, error) {
	opt := l.opt
	opt.Peek, opt.HaltOnPrecondition = true, true
	return opened(mongostream.Open(opt, mongostream.Observer{State: state}))
}

// opened keeps a nil pointer out of the interface.
func opened(s *mongostream.Stream, err error) (Stream, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Assess looks at the record and tries its position.
func (l *ChangeStream) Assess(ctx context.Context) (phase event.Phase, active bool, err error) {
	err = l.with(ctx, func(client *mongo.Client) error {
		record, reading, err := mongostream.Assess(ctx, client, l.opt)
		if record != nil {
			phase = record.Phase
		}
		active = reading
		return err
	})
	return phase, active, err
}

// Probe has nothing to add: Assess has opened a change stream.
func (l *ChangeStream) Probe(context.Context) error { return nil }

// Renew makes the record anew.
func (l *ChangeStream) Renew(ctx context.Context, why error) (lost event.Condition, err error) {
	err = l.with(ctx, func(client *mongo.Client) error { return mongostream.Replace(ctx, client, l.opt) })
	if err == nil && why != nil {
		lost = event.Condition{
			What:   "documents that were deleted in the transaction that inserted them, while the position was lost, are in no collection and were not published: " + why.Error(),
			Remedy: "if writers of this outbox do so, compare with what they know; otherwise nothing is missing",
			Anchor: "messages-gap",
		}
	}
	return lost, err
}

// NotePolling writes the record.
func (l *ChangeStream) NotePolling(ctx context.Context) error {
	return l.with(ctx, func(client *mongo.Client) error { return mongostream.MarkPolled(ctx, client, l.opt) })
}

// End is past the last operation.
func (l *ChangeStream) End(ctx context.Context) (end event.Position, err error) {
	err = l.with(ctx, func(client *mongo.Client) error {
		end, err = mongostream.End(ctx, client)
		return err
	})
	return end, err
}

// Listen waits: nothing announces documents to a relay that polls.
func (l *ChangeStream) Listen(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// Clock reads the server's clock and its open transactions.
func (l *ChangeStream) Clock() Clock { return mongostream.NewClock(l.opt) }

// Reconnect passes the error on.
func (l *ChangeStream) Reconnect(err error) {
	if l.obs.Reconnect != nil {
		l.obs.Reconnect(err)
	}
}

// with runs f over a client of its own.
func (l *ChangeStream) with(ctx context.Context, f func(*mongo.Client) error) error {
	client, err := mongostream.Connect(ctx, l.opt)
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	return f(client)
}
