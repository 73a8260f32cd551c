package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/ack"
	"github.com/walrelay/walrelay/event"
)

// Feed is one source with what is needed to read it.
type Feed struct {
	Name string
	// Open begins to read from the last confirmed position. It is called again
	// when a source ends with an error of the Retry class.
	Open   func() (Source, error)
	Router Router
}

// Options of a relay; the zero values get defaults.
type Options struct {
	// Grace bounds the orderly end: finishing transactions, flushing, confirming (30 s).
	Grace time.Duration
	// Window is the number of unconfirmed transactions per source, rounded up to a
	// power of two (65 536). A full window stops reading.
	Window int
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
	r := &Relay{
		opt: opt, obs: obs,
		wake:  make(chan struct{}, 1),
		halts: make(chan error, len(feeds)),
	}
	for i, f := range feeds {
		r.feeds = append(r.feeds, newFeed(r, uint16(i), f))
	}
	return r
}

// Result takes the outcome of a ticket from the publisher. It is for the
// publisher's goroutines and does not block.
func (r *Relay) Result(t event.Ticket, err error) {
	f := r.feeds[t.Source]
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

func (r *Relay) wakeCommitter() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// UnderWay is the number of events of a source that have no result yet.
func (r *Relay) UnderWay(source int) int64 { return r.feeds[source].underWay.Load() }

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
	closeErr := pub.Close(graceCtx)
	close(stopCommitter)
	committer.Wait()
	for _, f := range r.feeds {
		closeErr = errors.Join(closeErr, f.close(graceCtx))
	}
	left := int64(0)
	for _, f := range r.feeds {
		left += f.underWay.Load() + f.failed.Load()
	}
	switch {
	case cause != nil:
		return cause
	case left > 0:
		return &event.Error{
			Class: event.Halt, Fault: event.FaultUnacknowledged, Anchor: "unacknowledged",
			What:   fmt.Sprintf("stopped with %d events unacknowledged by Kafka", left),
			Remedy: "none is lost: they are read again at the next start; give a longer grace if Kafka was only slow",
			Cause:  closeErr,
		}
	case closeErr != nil && !errors.Is(closeErr, errGrace) && !errors.Is(closeErr, context.DeadlineExceeded):
		return closeErr
	}
	return nil
}

var errGrace = errors.New("the grace of the shutdown is over")

// commit is the committer: it confirms what is complete.
func (r *Relay) commit(stop <-chan struct{}) {
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for {
		select {
		case <-r.wake:
		case <-beat.C:
			if r.obs.CommitterBeat != nil {
				r.obs.CommitterBeat()
			}
		case <-stop:
			r.confirm()
			return
		}
		r.confirm()
	}
}

func (r *Relay) confirm() {
	for _, f := range r.feeds {
		f.confirm()
	}
}

// feed is a Feed at work. The feeder goroutine owns everything without a comment.
type feed struct {
	Feed
	r     *Relay
	index uint16

	visit  func(events int, commitMicros int64) // nil, or tells the observer
	window atomic.Pointer[ack.Window]
	room   chan struct{} // the committer made room in the window

	src struct { // set by the feeder, used by the committer for Confirm
		sync.Mutex
		source Source
		stale  bool // the window of this source is being abandoned: confirm nothing
	}
	underWay atomic.Int64 // tickets without a result
	failed   atomic.Int64 // tickets with an error for a result
	failure  atomic.Pointer[error]
	cancel   atomic.Pointer[context.CancelCauseFunc]

	open    bool // a transaction's entry is open
	entry   uint64
	micros  int64 // commit time of the transaction at hand
	rec     event.Record
	scratch []byte
}

func newFeed(r *Relay, index uint16, f Feed) *feed {
	nf := &feed{Feed: f, r: r, index: index, room: make(chan struct{}, 1)}
	nf.window.Store(ack.NewWindow(r.opt.Window))
	if published := r.obs.Published; published != nil {
		nf.visit = func(events int, micros int64) { published(f.Name, events, micros) }
	}
	return nf
}

// fail notes the first error that a result brought and stops the feeder.
func (f *feed) fail(err error) {
	if f.failure.CompareAndSwap(nil, &err) {
		if cancel := f.cancel.Load(); cancel != nil {
			(*cancel)(err)
		}
	}
}

func (f *feed) confirm() {
	f.src.Lock()
	defer f.src.Unlock()
	if f.src.source == nil || f.src.stale {
		return
	}
	pos, ok := f.window.Load().Low(f.visit)
	if !ok {
		return
	}
	f.src.source.Confirm(pos)
	select {
	case f.room <- struct{}{}:
	default:
	}
}

func (f *feed) close(ctx context.Context) error {
	f.src.Lock()
	src := f.src.source
	f.src.source = nil
	f.src.Unlock()
	if src == nil {
		return nil
	}
	return src.Close(ctx)
}

// run feeds until soft is cancelled and the source has finished, or the source
// halts. hard cuts everything short.
func (f *feed) run(soft, hard context.Context) {
	wait := time.Second
	for soft.Err() == nil {
		began := time.Now()
		err := f.session(soft, hard)
		switch {
		case err == nil, hard.Err() != nil:
			return
		case event.ClassOf(err) == event.Retry:
			if f.r.obs.Restarted != nil {
				f.r.obs.Restarted(f.Name, err)
			}
			if !f.abandon(soft) {
				return
			}
			if time.Since(began) > time.Minute {
				wait = time.Second
			}
			pause(soft, wait)
			wait = min(2*wait, 30*time.Second)
		default:
			f.halt(soft, err)
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// halt stops the source and stays, so that what is under way is still confirmed
// and the process can say why.
func (f *feed) halt(soft context.Context, err error) {
	if f.r.obs.Halted != nil {
		f.r.obs.Halted(f.Name, err)
	}
	if f.r.opt.ExitOnHalt {
		select {
		case f.r.halts <- err:
		default:
		}
	}
	for soft.Err() == nil {
		if f.r.obs.FeederBeat != nil {
			f.r.obs.FeederBeat(f.Name)
		}
		pause(soft, time.Second)
	}
}

// abandon closes a source whose stream has to begin anew, after its results are
// in: a new window must not meet the tickets of the old one.
func (f *feed) abandon(soft context.Context) bool {
	for f.underWay.Load() > 0 {
		if soft.Err() != nil {
			return false
		}
		f.r.wakeCommitter()
		pause(soft, 50*time.Millisecond)
	}
	f.confirm()
	f.src.Lock()
	src := f.src.source
	f.src.source, f.src.stale = nil, true
	f.src.Unlock()
	closeCtx, cancel := context.WithTimeout(context.WithoutCancel(soft), f.r.opt.Grace)
	defer cancel()
	_ = src.Close(closeCtx)
	f.window.Store(ack.NewWindow(f.r.opt.Window))
	f.open = false
	return true
}

// session opens the source and feeds from it until it ends.
func (f *feed) session(soft, hard context.Context) error {
	src, err := f.Open()
	if err != nil {
		return err
	}
	f.src.Lock()
	f.src.source, f.src.stale = src, false
	f.src.Unlock()

	ctx, cancel := context.WithCancelCause(hard)
	defer cancel(nil)
	f.cancel.Store(&cancel)
	if err := f.failure.Load(); err != nil {
		return *err
	}
	stop := context.AfterFunc(soft, src.Finish)
	defer stop()

	for {
		batch, err := src.Next(ctx)
		if err == nil {
			err = f.feed(ctx, batch)
			batch.Memory.Release()
		}
		if f.r.obs.FeederBeat != nil {
			f.r.obs.FeederBeat(f.Name)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		default:
			if failure := f.failure.Load(); failure != nil {
				return *failure
			}
			return err
		}
	}
}

// feed publishes one batch.
func (f *feed) feed(ctx context.Context, b *event.Batch) error {
	events := b.Events
	if f.r.obs.Received != nil && len(events) > 0 {
		var n int64
		for i := range events {
			n += int64(len(events[i].Fields[event.Payload]))
		}
		f.r.obs.Received(f.Name, len(events), n)
	}
	window := f.window.Load()
	for _, span := range b.Spans {
		if span.Events == 0 && span.Done && !f.open {
			for !window.Idle(span.End) {
				if err := f.waitForRoom(ctx); err != nil {
					return err
				}
			}
			f.r.wakeCommitter()
			continue
		}
		for !f.open {
			if f.entry, f.open = window.Open(); !f.open {
				if err := f.waitForRoom(ctx); err != nil {
					return err
				}
			}
		}
		window.Add(f.entry, span.Events)
		if span.Events > 0 {
			f.micros = events[0].CommitMicros
		}
		for i := range events[:span.Events] {
			if err := f.publish(ctx, &events[i], b.Memory); err != nil {
				return err
			}
		}
		if span.Done {
			f.open = false
			if window.Close(f.entry, span.End, f.micros) {
				f.r.wakeCommitter()
			}
		}
		events = events[span.Events:]
	}
	return nil
}

// scratchSize is how much made-up memory (formatted times and stamps) is
// allocated at a time; records keep pointing into it, the collector frees it.
const (
	scratchSize = 64 << 10
	scratchMin  = 2 << 10
)

func (f *feed) publish(ctx context.Context, ev *event.Event, mem *event.Memory) error {
	if cap(f.scratch)-len(f.scratch) < scratchMin {
		f.scratch = make([]byte, 0, scratchSize)
	}
	if failure := f.failure.Load(); failure != nil {
		return *failure
	}
	scratch, poison := f.Router.Route(ev, &f.rec, f.scratch)
	f.scratch = scratch
	if ev.Refused != nil {
		poison = ev.Refused // the earlier finding says more
	}
	t := event.Ticket{Memory: mem, Entry: f.entry, Source: f.index}
	// Counted before the call: the result may come before it returns.
	mem.Retain(1)
	f.underWay.Add(1)
	var err error
	switch {
	case poison == nil:
		err = f.r.pub.Publish(ctx, &f.rec, t)
	case event.ClassOf(poison) == event.Poison:
		err = f.r.pub.Refuse(ctx, &f.rec, t, poison)
	default:
		err = poison
	}
	if err != nil {
		// Not taken: there will be no result.
		f.underWay.Add(-1)
		mem.Release()
	}
	return err
}

// waitForRoom waits until the committer has confirmed something.
func (f *feed) waitForRoom(ctx context.Context) error {
	f.r.wakeCommitter()
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-f.room:
	case <-t.C:
		if f.r.obs.FeederBeat != nil {
			f.r.obs.FeederBeat(f.Name)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
