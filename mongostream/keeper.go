package mongostream

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
)

const (
	// keeperStep bounds how long the keeper sleeps.
	keeperStep = 250 * time.Millisecond
	// idleEvery is the time between two writes of the position while no events come: each write is an
	// entry in the log of every member.
	idleEvery = 5 * time.Second
	// nudgeEvery throttles renewals that are made to move the log.
	nudgeEvery = 100 * time.Millisecond
)

// keeper renews the lease and stores the position.
type keeper struct {
	s         *Stream
	lastWrite time.Time
	lastSave  time.Time
	lastPast  time.Time // save that passed events
	lastTry   time.Time
	handed    int64
	failing   bool
}

// keep runs until the stream is closed and its last word is written.
func (s *Stream) keep(ctx context.Context) {
	k := &keeper{s: s}
	for ctx.Err() == nil && !s.closing.Load() {
		if s.obs.KeeperBeat != nil {
			s.obs.KeeperBeat()
		}
		k.step(ctx)
		select {
		case <-s.keeperWake:
		case <-time.After(keeperStep):
		case <-ctx.Done():
		}
	}
	if !s.opt.writesRecord() {
		k.unwritten()
		return
	}
	<-s.pumpDone // it may still be taking the source
	k.farewell(ctx)
}

func (k *keeper) step(ctx context.Context) {
	s := k.s
	if !s.opt.writesRecord() {
		k.unwritten()
		return
	}
	if s.tenure.until.Load() == 0 {
		return
	}
	now := time.Now()
	if now.Sub(k.lastTry) < nudgeEvery {
		return
	}
	unsaved := k.unsaved()
	// The save of an idle position, as at each start, puts off none that passes events: a relay that
	// lives for half a second would never come on.
	every, last := s.opt.CheckpointEvery, k.lastPast
	if unsaved != "" && !k.eventful(unsaved) {
		every, last = max(every, idleEvery), k.lastSave
	}
	switch {
	case unsaved != "" && now.Sub(last) >= every:
		k.write(ctx, unsaved)
	case s.over.Load():
		// What is under way is still confirmed; the lease runs out, so that an operator can set the position
		// of a source that halted.
	case now.Sub(k.lastWrite) >= s.opt.LeaseTTL/3, s.nudged.Swap(false):
		k.write(ctx, "")
	}
}

// unsaved is the confirmed position if it is not stored yet.
func (k *keeper) unsaved() string {
	safe, saved := k.s.safe.Load(), k.s.saved.Load()
	if safe == nil || saved != nil && *safe <= *saved {
		return ""
	}
	return *safe
}

// eventful reports whether events lie between what is stored and the position.
func (k *keeper) eventful(string) bool {
	last, saved := k.s.lastEvent.Load(), k.s.saved.Load()
	return last != nil && (saved == nil || *last > *saved)
}

// write stores the position, or, where there is none to store, renews the lease.
func (k *keeper) write(ctx context.Context, position string) {
	s := k.s
	s.tenure.Lock()
	mine, held := s.tenure.lease, s.tenure.held
	s.tenure.Unlock()
	if !held {
		return
	}
	client, err := s.connect(ctx)
	if err != nil {
		return // the pump says so
	}
	sent := s.sinceBegan()
	k.lastTry = time.Now()
	callCtx, cancel := context.WithTimeout(ctx, s.opt.LeaseTTL/2)
	defer cancel()
	var ours bool
	handed := s.handed.Load()
	if position == "" {
		ours, err = s.opt.renew(callCtx, client, mine)
	} else {
		ours, err = s.opt.save(callCtx, client, mine, placeOf(s.unusual.take(position)), k.besides(handed))
	}
	switch {
	case err != nil:
		if !k.failing {
			c := event.ConditionOf(Classify(err, "writing the position"))
			c.Remedy = "positions are not confirmed meanwhile, and without a lease reading stops; " + c.Remedy
			s.warn("marker", c)
		}
		k.failing = true
		return
	case !ours:
		_ = s.supplanted(nil)
		return
	}
	if k.failing {
		k.failing = false
		s.warn("marker", event.Condition{})
	}
	k.lastWrite = k.lastTry
	s.extend(sent)
	if position != "" {
		if k.eventful(position) {
			k.lastPast = k.lastTry
		}
		k.lastSave, k.handed = k.lastTry, handed
		s.saved.Store(&position)
	}
}

// besides is what else is remembered with a position.
func (k *keeper) besides(handed int64) bson.D {
	d := bson.D{
		{Key: "phase", Value: event.PhaseStreaming},
		{Key: "print", Value: k.s.opt.fingerprint()},
		{Key: "events", Value: bson.D{{Key: "$add", Value: bson.A{"$events", handed - k.handed}}}},
	}
	if uuid := k.s.collection.Load(); uuid != nil {
		d = append(d, bson.E{Key: "collection_uuid", Value: *uuid})
	}
	return d
}

// farewell stores the last confirmed position and lets the next reader in.
func (k *keeper) farewell(ctx context.Context) {
	s := k.s
	s.tenure.Lock()
	mine, held := s.tenure.lease, s.tenure.held
	s.tenure.Unlock()
	if !held || s.lost.Load() != nil {
		return
	}
	if unsaved := k.unsaved(); unsaved != "" {
		k.write(ctx, unsaved)
	}
	client, err := s.connect(ctx)
	if err != nil {
		return
	}
	callCtx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = s.opt.release(callCtx, client, mine) // or it runs out
	s.tenure.until.Store(0)
}

// unwritten is for sources without a record: what is confirmed counts as stored.
func (k *keeper) unwritten() {
	if unsaved := k.unsaved(); unsaved != "" {
		k.s.saved.Store(&unsaved)
	}
}
