package main

import (
	"github.com/walrelay/walrelay/capture"
	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/slot"
)

// setLog says which log the source has.
func (r *sourceRoom) setLog(c *config.Config, opt *capture.Options) error {
	if c.IsMongo(r.name) {
		mopt, err := c.MongoOptions(r.name)
		mopt.Holder = opt.Holder
		opt.Log = capture.OverStream(mopt, r.streamObserver())
		return err
	}
	sopt, err := c.SlotOptions(r.name)
	if err != nil {
		return err
	}
	opt.Log, opt.Notify = capture.OverSlot(sopt, r.slotObserver()), sopt.Notify
	return nil
}

// slotObserver is told what the log of Postgres says of itself.
func (r *sourceRoom) slotObserver() slot.Observer {
	obs := slot.Observer{
		Slot:      func(report event.SlotReport) { r.view.SlotReport(report) },
		Ignored:   r.ignored,
		Reconnect: func(error) { r.view.Reconnected() },
	}
	if r.pump != nil {
		obs.PumpBeat, obs.KeeperBeat = r.pump.Beat, r.keeper.Beat
	}
	return obs
}

// streamObserver is told what the log of MongoDB says of itself.
func (r *sourceRoom) streamObserver() mongostream.Observer {
	obs := mongostream.Observer{
		Lag:       func(report event.StreamReport) { r.view.StreamReport(report) },
		Ignored:   r.ignored,
		Reconnect: func(error) { r.view.Reconnected() },
	}
	if r.pump != nil {
		obs.PumpBeat, obs.KeeperBeat = r.pump.Beat, r.keeper.Beat
	}
	return obs
}

// ignored counts what the log brought and was no event to publish.
func (r *sourceRoom) ignored(reason string, n int) {
	if reason == "deferred" {
		r.view.Deferred(n)
		return
	}
	r.view.Ignored(reason, n)
}

// watchLog has the loops of the log watched. They live as long as it is followed; in
// another gear they are vouched for.
func (r *sourceRoom) watchLog(obs *capture.Observer, mode capture.Mode) {
	if mode == capture.ModePoll {
		return
	}
	r.pump, r.keeper = r.ops.Loop("pump "+r.name, loopAge), r.ops.Loop("keeper "+r.name, loopAge)
	obs.Beat = func() { r.pump.Beat(); r.keeper.Beat() }
}
