package relay

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/ack"
	"github.com/walrelay/walrelay/event"
)

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
	settler  atomic.Pointer[Settler] // of the source at hand, where it is one
	waiting  atomic.Bool             // the feeder waits for its source
	feeding  atomic.Bool             // the feeder has a batch in hand
	underWay atomic.Int64            // tickets without a result
	failed   atomic.Int64            // tickets with an error for a result
	failure  atomic.Pointer[error]
	cancel   atomic.Pointer[context.CancelCauseFunc]

	open    bool // a transaction's entry is open
	entry   uint64
	micros  int64 // commit time of the transaction at hand
	rec     event.Record
	scratch []byte

	inversions inversions
}

func newFeed(r *Relay, index uint16, f Feed) *feed {
	nf := &feed{Feed: f, r: r, index: index, room: make(chan struct{}, 1)}
	nf.window.Store(nf.newWindow())
	if published := r.obs.Published; published != nil {
		nf.visit = func(events int, micros int64) { published(f.Name, events, micros) }
	}
	return nf
}

func (f *feed) newWindow() *ack.Window {
	if f.r.opt.Order != nil && f.Reading != nil {
		return ack.NewWindow(f.r.opt.OrderWindow)
	}
	return ack.NewWindow(f.r.opt.Window)
}

// fail notes the first error that a result brought and stops the feeder.
func (f *feed) fail(err error) {
	if f.failure.CompareAndSwap(nil, &err) {
		if cancel := f.cancel.Load(); cancel != nil {
			(*cancel)(err)
		}
	}
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
			f.unsort()
			return
		case errors.Is(err, event.ErrTurn):
			if !f.abandon(soft) {
				return
			}
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
	f.unsort()
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
			f.unsort()
			return false
		}
		f.unsort() // what waits for its place waits for others alone now
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
	if src != nil {
		_ = src.Close(closeCtx)
	}
	f.window.Store(f.newWindow())
	f.failed.Store(0) // they are read again
	f.failure.Store(nil)
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
	f.inversions.table.Reset() // what comes may have come before
	f.settler.Store(nil)
	if settler, ok := src.(Settler); ok {
		f.settler.Store(&settler)
		f.unsort()
	} else if f.r.sort != nil {
		f.r.sort.attach(f)
	}

	ctx, cancel := context.WithCancelCause(hard)
	defer cancel(nil)
	f.cancel.Store(&cancel)
	if err := f.failure.Load(); err != nil {
		return *err
	}
	stop := context.AfterFunc(soft, src.Finish)
	defer stop()

	for {
		f.waiting.Store(true)
		batch, err := src.Next(ctx)
		f.waiting.Store(false)
		if err == nil {
			f.feeding.Store(true)
			err = f.feed(ctx, batch)
			f.feeding.Store(false)
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

// unsort: the source says no more what is still to come.
func (f *feed) unsort() {
	if f.r.sort != nil {
		f.r.sort.detach(f)
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
