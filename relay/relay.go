package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/walrelay/walrelay/event"
)

// Feed is one source with what is needed to read it.
type Feed struct {
	Name string
	// Open begins to read from the last confirmed position. It is called again
	// when a source ends with an error of the Retry class.
	Open   func() (Source, error)
	Router Router
	// Reading looks at the clock of the source's server, for the order of stamps; nil: the
	// source cannot say what is still to come, and nobody waits for it. One goroutine calls it.
	Reading func(ctx context.Context) (event.Reading, error)
}

// Options of a relay; the zero values get defaults.
type Options struct {
	// Grace bounds the orderly end: finishing transactions, flushing, confirming (30 s).
	Grace time.Duration
	// Window is the number of unconfirmed transactions per source, rounded up to a
	// power of two (65 536). A full window stops reading. OrderWindow is the same for a source
	// whose transactions wait for the order of their stamps (four times Window).
	Window, OrderWindow int
	// Order puts the records of some routes in the order of their stamps; nil: none asks for it.
	Order *Ordering
	// ExitOnHalt makes Run return when a source halts, instead of keeping the
	// process up for the other sources and for whoever looks at it.
	ExitOnHalt bool
}

// Relay runs feeds into one publisher.
type Relay struct {
	opt   Options
	obs   Observer
	pub   Publisher
	feeds []*feed
	sort  *sorter // nil: everything goes as it comes

	wake  chan struct{} // something completed: the committer looks
	halts chan error
}

// New makes a relay. The publisher must deliver its results to Result.
func New(opt Options, obs Observer, feeds []Feed) *Relay {
	if opt.Grace == 0 {
		opt.Grace = 30 * time.Second
	}
	if opt.Window == 0 {
		opt.Window = 1 << 16
	}
	if opt.OrderWindow == 0 {
		opt.OrderWindow = 4 * opt.Window
	}
	r := &Relay{
		opt: opt, obs: obs,
		wake:  make(chan struct{}, 1),
		halts: make(chan error, len(feeds)),
	}
	for i, f := range feeds {
		r.feeds = append(r.feeds, newFeed(r, uint16(i), f))
	}
	if opt.Order != nil {
		r.sort = newSorter(r, *opt.Order, r.feeds)
	}
	return r
}

// Result takes the outcome of a ticket from the publisher. It is for the
// publisher's goroutines and does not block.
func (r *Relay) Result(t event.Ticket, err error) {
	f := r.feeds[t.Source]
	if settler := f.settler.Load(); settler != nil && (*settler).Settle(t.Entry, err) {
		if unacknowledged(err) {
			f.failed.Add(1) // given back by the end; the exit code says so
		}
		err = nil
	}
	if err != nil {
		// The entry stays incomplete: nothing at or above this event is confirmed.
		f.fail(err)
		f.failed.Add(1)
	} else if f.window.Load().Done(t.Entry) {
		r.wakeCommitter()
	}
	f.underWay.Add(-1)
	t.Memory.Release()
}

func unacknowledged(err error) bool {
	var e *event.Error
	return errors.As(err, &e) && e.Fault == event.FaultUnacknowledged
}

func (r *Relay) wakeCommitter() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Unsettled is the number of events of a source that were read and are not
// acknowledged: under way, or given back with an error.
func (r *Relay) Unsettled(source int) int64 {
	f := r.feeds[source]
	return f.underWay.Load() + f.failed.Load()
}

// Run relays until ctx is cancelled and everything that was read is settled; it
// returns nil then, or an error of FaultUnacknowledged when the grace was too
// short. With ExitOnHalt it returns the error of the first source that halts.
func (r *Relay) Run(ctx context.Context, pub Publisher) error {
	r.pub = pub
	// hard ends what does not end by itself within the grace.
	hard, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	soft, finish := context.WithCancelCause(ctx)
	defer finish(nil)

	var feeders, committer sync.WaitGroup
	for _, f := range r.feeds {
		feeders.Go(func() { f.run(soft, hard) })
	}
	stopCommitter := make(chan struct{})
	committer.Go(func() { r.commit(stopCommitter) })
	finishSorting := r.startSorting(hard)

	var cause error
	select {
	case <-ctx.Done():
	case err := <-r.halts:
		cause = err
		finish(err)
	}
	graceCtx, cancel := context.WithTimeout(hard, r.opt.Grace)
	defer cancel()
	stopCut := context.AfterFunc(graceCtx, func() { cut(errGrace) })
	defer stopCut()

	feeders.Wait()
	finishSorting() // what waits goes now, or it would come twice
	closeErr := pub.Close(graceCtx)
	close(stopCommitter)
	committer.Wait()
	for _, f := range r.feeds {
		closeErr = errors.Join(closeErr, f.close(graceCtx))
	}
	left := r.leftover(closeErr)
	switch {
	case cause != nil:
		return cause
	case left != nil:
		return left
	case closeErr != nil && !errors.Is(closeErr, errGrace) && !errors.Is(closeErr, context.DeadlineExceeded):
		return closeErr
	}
	return nil
}

// startSorting begins to release; the answer ends it, once everything has gone.
func (r *Relay) startSorting(hard context.Context) (finish func()) {
	if r.sort == nil {
		return func() {}
	}
	var releaser, clocks sync.WaitGroup
	stop := make(chan struct{})
	releaser.Go(func() { r.sort.release(hard, stop) })
	// The clocks are read until the last feeder has ended: one may wait for another.
	ctx, cancel := context.WithCancel(hard)
	for _, f := range r.feeds {
		if f.Reading != nil {
			clocks.Go(func() { r.sort.watch(ctx, f) })
		}
	}
	return func() {
		cancel()
		close(stop)
		clocks.Wait()
		releaser.Wait()
	}
}

var errGrace = errors.New("the grace of the shutdown is over")
