package slot

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// errLeft means that the relay left the stream so that the server can stop.
var errLeft error = &event.Error{
	Class: event.Retry, Anchor: "server-stopping",
	What:   "the relay left the stream of a server that is shutting down, because what the server waits for is not acknowledged by Kafka or cannot be marked any more",
	Remedy: "nothing is lost: it goes on when the server is back; if it repeats without a shutdown, look at the broker",
}

// tick sends what is due and watches the wire.
func (w *wire) tick() error {
	if w.s.obs.PumpBeat != nil {
		w.s.obs.PumpBeat()
	}
	if err := w.s.aborted.Load(); err != nil {
		return *err
	}
	confirmed := w.s.confirmed()
	switch since := w.now.Sub(w.lastStatus); {
	case w.s.nudged.Swap(false):
		// Somebody may nudge at every tick: what follows is not to be missed for that.
		if err := w.status(true); err != nil {
			return err
		}
	case since >= w.every,
		confirmed > w.sentFlush && since >= replyEvery,
		w.wantsReply && since >= replyEvery:
		if err := w.status(false); err != nil {
			return err
		}
	}
	if err := w.leaveStoppingServer(confirmed); err != nil {
		return err
	}
	quiet := w.now.Sub(w.lastRead)
	limit := w.s.wireTimeout(w.timeout)
	switch {
	case quiet >= limit:
		return &event.Error{
			Class: event.Retry, Anchor: "wire-silent",
			What:   fmt.Sprintf("nothing came from the server for %s although a reply was asked for", limit),
			Remedy: "the connection is made anew; look for a firewall or a host that drops packets if this repeats",
		}
	case quiet >= limit/2 && !w.asked:
		w.asked = true
		return w.status(true)
	}
	return nil
}

// leaveStoppingServer ends the session when the server shuts down and waits for
// a confirmation that cannot be given, because the broker does not acknowledge.
func (w *wire) leaveStoppingServer(confirmed event.LSN) error {
	stopping, limit := w.s.serverStopping.Load(), leaveAfter
	if w.s.opt.claims() {
		limit = leaveMarksAfter // a server that refuses connections takes no marks either
	}
	switch {
	case stopping != 0 && w.now.Sub(time.Unix(0, stopping)) >= limit,
		w.insistent >= 10 && w.now.Sub(w.insistentSince) >= limit:
		if confirmed < w.edge.received || w.edge.inTx {
			return errLeft
		}
	}
	return nil
}

func (w *wire) status(ask bool) error {
	flush := w.s.confirmed()
	w.out = appendStatus(w.out[:0], max(w.edge.received, flush), flush, time.Now().UnixMicro(), ask)
	if err := w.sess.conn.SetWriteDeadline(time.Now().Add(w.s.opt.WireTimeout)); err != nil {
		return err
	}
	if _, err := w.sess.conn.Write(w.out); err != nil {
		return err
	}
	w.lastStatus = w.now
	w.sentFlush = flush
	w.wantsReply = false
	w.s.sentConfirmed.Store(uint64(flush))
	return nil
}
