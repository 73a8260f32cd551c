package main

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/slot"
)

// streamDrain waits until the remembered position has passed the end that the oplog had.
type streamDrain struct {
	opt    mongostream.Options
	client *mongo.Client
	end    event.Position
	table  draining // nil, or waits for the collection while there is no stream
}

func startStreamDrain(ctx context.Context, c *config.Config, name string) (draining, error) {
	opt, err := c.MongoOptions(name)
	if err != nil {
		return nil, err
	}
	d := &streamDrain{opt: opt}
	if d.client, err = mongostream.Connect(ctx, opt); err != nil {
		return nil, err
	}
	if d.end, err = mongostream.End(ctx, d.client); err != nil {
		d.close(ctx)
		return nil, err
	}
	if c.Capture(name) == slot.CaptureAuto {
		if d.table, err = startTableDrain(ctx, c, name); err != nil {
			d.close(ctx)
			return nil, err
		}
	}
	return d, nil
}

func (d *streamDrain) left(ctx context.Context) (missing, done string, err error) {
	callCtx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	r, err := mongostream.ReadRecord(callCtx, d.client, d.opt)
	switch {
	case err != nil:
		return "", "", err
	case r != nil && r.Phase == event.PhaseStreaming && r.Position().Compare(d.end) >= 0:
		return "", "everything that was committed when drain began is confirmed", nil
	case d.table != nil && (r == nil || r.Phase != event.PhaseStreaming):
		return d.table.left(ctx)
	case r == nil:
		return "the source has no position: run 'walrelay init'", "", nil
	}
	missing = fmt.Sprintf("the position stands at %s, before %s, where the oplog ended", moment(r.Position()), moment(d.end))
	if r.Holder == "" {
		missing += "; no relay reads the source"
	}
	return missing, "", nil
}

func (d *streamDrain) close(ctx context.Context) {
	if d.client != nil {
		_ = d.client.Disconnect(context.WithoutCancel(ctx))
	}
	if d.table != nil {
		d.table.close(ctx)
	}
}
