package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/capture"
	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/publish"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/router"
	"github.com/walrelay/walrelay/slot"
)

// sourceRoom is one source with what is shown of it.
type sourceRoom struct {
	name    string
	feeds   []int // indexes in the relay: the source, and the sweep beside it
	capture *capture.Capture
	store   store        // nil: no tables
	parking parkingStore // nil: nothing is put aside
	ops     *ops.Ops
	view    *ops.Source
	relay   atomic.Pointer[relay.Relay]
	aside   atomic.Int64 // events put aside, not yet taken off what counts as published

	feeder       *ops.Beat
	pump, keeper *ops.Beat // of the log; nil where it is never read

	mu struct {
		sync.Mutex
		state  event.State
		reason event.Condition
		halted bool // the relay stopped the source: what the stream says does not matter any more
	}
}

func newSourceRoom(o *ops.Ops, c *config.Config, name string, exitOnHalt bool) (*sourceRoom, error) {
	r := &sourceRoom{name: name, ops: o, feeder: o.Loop("feeder "+name, loopAge)}
	r.mu.state = event.StateStarting
	writeBack := c.WriteBack(name)
	opt := capture.Options{
		ExitOnHalt: exitOnHalt, Holder: holder(), NoLookUp: os.Getenv(noLookUp) != "",
		Mode: capture.Mode(c.Capture(name)), CatchUp: c.OnGap(name) == slot.GapCatchUp,
		Marks: writeBack != slot.KeepRows, Deletes: writeBack == slot.DeleteRows,
	}
	var err error
	if opt.Outbox, err = c.OutboxOptions(name); err != nil {
		return nil, err
	}
	ropt, err := c.RouterOptions(name)
	if err != nil {
		return nil, err
	}
	rt, err := router.New(ropt)
	if err != nil {
		return nil, err
	}
	opt.Outbox.LooseRoute = rt.Loose
	if r.store, err = openStore(c, name); err != nil {
		return nil, err
	}
	if r.store != nil {
		opt.Tables = r.store.Tables
		// Where nothing is written back and nothing is put aside there is nothing to keep.
		if c.KeepsBooks(name) && (opt.Marks || c.PublishOptions().OnPoison == publish.PoisonPark) {
			r.parking = r.store.Parking()
			opt.Leases, opt.Parking = r.store.Leases(), r.parking
		}
	}
	obs := r.observer()
	r.watchLog(&obs, opt.Mode)
	if err := r.setLog(c, &opt); err != nil {
		return nil, err
	}
	r.capture = capture.New(opt, obs)
	probes := ops.SourceProbes{Progress: r.capture.Progress, State: r.state, InFlight: r.inFlight, Inversions: r.inversions}
	probes.ClusterTimes = c.IsMongo(name)
	if c.OrderOptions() != nil {
		probes.Order = r.order
	}
	r.view = o.Source(name, probes)
	return r, nil
}

// noLookUp names the variable that leaves the look-up below the start line out: for
// measuring what it is worth, never for use.
const noLookUp = "WALRELAY_TEST_NO_LOOK_UP"

// holder is a name that no other process has, and none before had.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), uuid.New())
}

func (r *sourceRoom) observer() capture.Observer {
	return capture.Observer{
		State:   r.setState,
		Gear:    func(g capture.Gear, why string) { r.view.Gear(string(g), why) },
		Warning: r.warning,
		Scribe: outbox.ScribeObserver{
			Marked: func(m outbox.Marked, took time.Duration) {
				r.view.Marked(m.Pending, m.Foreign, m.Settled, m.Absent, took)
			},
			Skipped: func(n int) { r.view.Skipped(n) },
		},
		Poller: outbox.PollerObserver{
			Claimed: func(rows int, took time.Duration) { r.view.Claimed(rows, took) },
			Settled: func(_, retried, failed, _, parked int) {
				r.view.Retried(retried)
				r.view.GivenUp(failed + parked)
			},
			Lost:      func(n int) { r.view.ClaimsLost(n) },
			Reclaimed: func(n int) { r.view.Reclaimed(n) },
			HeldKeys:  func(n int) { r.view.HeldKeys(n) },
		},
		Tenancy: outbox.TenancyObserver{
			Shards:  func(own, of, members int) { r.view.Shards(own, of, members) },
			Lost:    func(n int) { r.view.ShardsLost(n) },
			Warning: func(key string, c event.Condition) { r.view.Warning(key, c) },
		},
		Caretaker: outbox.CaretakerObserver{
			Figures: func(relation string, f outbox.Figures) {
				r.countParked()
				r.view.Backlog(relation, ops.Backlog{
					OldestPending: f.OldestPending, Pending: f.Pending, Retrying: f.Retrying, Processing: f.Processing, Failed: f.Failed,
					Limit: outbox.CountLimit, DeadTuples: f.DeadTuples,
				})
			},
			Retained: func(_ string, kept outbox.Retained) { r.view.Retained(kept.Rows, len(kept.Partitions)) },
			Warning:  func(key string, c event.Condition) { r.view.Warning(key, c) },
		},
	}
}

// advice are the warnings that stop nothing: they are shown, and the source stays
// ready. Others mean that positions do not advance.
var advice = map[string]bool{"foreign-poller": true, "messages-gap": true}

func (r *sourceRoom) warning(key string, c event.Condition) {
	if advice[key] {
		r.view.Warning(key, c)
		return
	}
	r.ops.Broker().Condition("source/"+r.name+"/"+key, c)
}

// countParked reads how many events are put aside, for the figures.
func (r *sourceRoom) countParked() {
	if r.parking == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if n, err := r.parking.Counts(ctx); err == nil {
		r.view.Parked(n[outbox.StateParked], n[outbox.StateBehind], n[outbox.StateRetrying])
	}
}

func (r *sourceRoom) setState(st event.State, c event.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.halted {
		r.mu.state, r.mu.reason = st, c
	}
}

func (r *sourceRoom) halt(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.halted = true
	if r.pump != nil {
		// The log's loops have ended on purpose: the process is well, the source is not.
		r.pump.End()
		r.keeper.End()
	}
	r.mu.state, r.mu.reason = event.StateHalted, event.ConditionOf(err)
}

func (r *sourceRoom) state() (event.State, event.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.state, r.mu.reason
}

func (r *sourceRoom) inFlight() (bytes, events int64) {
	for _, i := range r.feeds {
		events += r.relay.Load().Unsettled(i)
	}
	return r.capture.InFlightBytes(), events
}

// published takes what the relay settled. Events that were put aside are settled
// and not published.
func (r *sourceRoom) published(events int, commitMicros int64) {
	for aside := r.aside.Load(); aside > 0; aside = r.aside.Load() {
		n := min(aside, int64(events))
		if r.aside.CompareAndSwap(aside, aside-n) {
			events -= int(n)
			break
		}
	}
	if events > 0 {
		r.view.Published(events, commitMicros)
	}
}
