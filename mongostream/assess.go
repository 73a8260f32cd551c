package mongostream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Assess answers what a stream that is opened now would find: the record (nil: none) and
// whether somebody else is reading, or the error that it would end with. It changes nothing.
func Assess(ctx context.Context, client *mongo.Client, o Options) (r *Record, active bool, err error) {
	o = o.WithDefaults()
	if r, err = ReadRecord(ctx, client, o); err != nil {
		return nil, false, err
	}
	facts, err := ReadFacts(ctx, client) // after the record, which its reader moves on meanwhile
	if err != nil {
		return nil, false, err
	}
	if err = judge(r, facts, &o); err != nil {
		return r, r != nil && r.active(), err
	}
	if r.active() {
		return r, true, nil // its reader would know
	}
	return r, false, probe(ctx, client, &o, r.start(&o))
}

// probeFor bounds the look whether a position can be used. A server says at once that it
// cannot; one that says nothing is reading on from there.
const probeFor = 2 * time.Second

// probe opens a stream at a position and lets it look.
func probe(ctx context.Context, client *mongo.Client, o *Options, from start) error {
	// From a deadline the driver would make a limit of its own, beside the one that a stream's command has.
	parent := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	defer cancel(nil)
	defer context.AfterFunc(parent, func() { cancel(context.Cause(parent)) })()
	defer time.AfterFunc(probeFor, func() { cancel(context.DeadlineExceeded) }).Stop()
	c, _, err := openCursor(ctx, client, o, from)
	if err == nil {
		defer c.close(ctx)
		_, err = c.more(ctx, 1, time.Millisecond)
	}
	switch {
	case err == nil, ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil
	case byTimeInstead(err) && from.time.IsZero():
		return probe(parent, client, o, start{time: tokenTime(tokenData(from.token))})
	}
	return Classify(err, "opening the change stream at the remembered position")
}

// judge says which gap is to be seen without opening a stream. A server takes a position
// of another one, or of its own future, and stays silent.
func judge(r *Record, f Facts, o *Options) error {
	switch {
	case f.Router && o.manyRouters():
		return precondition(AnchorOptions, "the URL names several routers (mongos) of a sharded cluster, and the next answer of a change stream is to be had from the one that opened it alone",
			"name one router in the URL; a second relay that names another one can stand by")
	case r == nil && !o.writesRecord():
		return nil
	case r == nil && f.standalone():
		return kindStandalone.answer(nil) // init would say so, too
	case r == nil:
		return precondition(AnchorNotInitialised, fmt.Sprintf("there is no position of source %s in %s.%s, and walrelay has never streamed from here", o.Source, o.Database, o.SourcesCollection()),
			"run 'walrelay init'")
	case r.Set != "" && f.Set != "" && r.Set != f.Set:
		return gap(AnchorOtherCluster,
			fmt.Sprintf("this is another replica set: the position was written on %s, the server is of %s, and positions of one mean nothing in the other", r.Set, f.Set),
			"if the address is wrong, correct it; otherwise "+remedyLost)
	case r.Database != o.Database || r.Collection != o.Collection:
		return gap(AnchorPositionLost,
			fmt.Sprintf("the position of %s belongs to collection %s.%s, and the source now reads %s", r.Marker, r.Database, r.Collection, o.Namespace()),
			"give the source another name, or the position of the new collection with 'walrelay position set'")
	}
	// A fresh position may be one tick past the last write, and a position is only
	// given for what a majority has, which no failover takes back.
	if head := after(f.Applied); !f.Applied.IsZero() && r.ClusterTime.After(head) {
		return gap(AnchorWentBack,
			fmt.Sprintf("the remembered position is of %s, past the last write of the server, %s: the server was restored to an earlier state", clock(r.ClusterTime), clock(f.Applied)),
			remedyLost)
	}
	return nil
}

// manyRouters: commands go to one router or another.
func (o *Options) manyRouters() bool {
	c, err := o.ClientOptions()
	return err == nil && (len(c.Hosts) > 1 || c.LoadBalanced != nil && *c.LoadBalanced)
}

// start is where a stream goes on that trusts the record: after the token, or, where the
// pipeline is no longer the one that it was read with, at its time.
func (r *Record) start(o *Options) start {
	if r.Print != o.fingerprint() {
		return start{time: r.ClusterTime}
	}
	return start{token: r.Token}
}
