package slot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/walrelay/walrelay/event"
)

const (
	// wake bounds how long the pump is blind to what others ask of it (a confirmed
	// position, the end): the deadline of each read and wait.
	wake = 250 * time.Millisecond
	// minRead is the least room worth a read.
	minRead = 16 << 10
	// replyEvery throttles answers to a server that asks again at once when an
	// answer does not satisfy it (it does so while shutting down).
	replyEvery = 100 * time.Millisecond
	// leaveAfter is how long the relay stays in the stream of a server that wants
	// to stop while events are still unacknowledged.
	leaveAfter = 5 * time.Second
	// leaveMarksAfter is the same where rows are marked before a position is confirmed.
	leaveMarksAfter = time.Second
)

// wire is the pump's view of one session.
type wire struct {
	s    *Stream
	sess *session
	edge edge

	cur    *slab
	parsed int // cur.buf[:parsed] has been handed over

	spell   spell
	gulping bool // the kernel gathers gulpBytes before it wakes us

	timeout    time.Duration // the server's wal_sender_timeout; 0: none
	every      time.Duration // status interval
	now        time.Time
	deadline   time.Time // of the connection's reads
	lastRead   time.Time
	lastStatus time.Time
	sentFlush  event.LSN
	asked      bool // we asked for a reply and wait for any frame
	wantsReply bool
	// insistent counts the server's requests for a reply, each right after one of
	// ours, that nothing was said to in between: the sign of a server that shuts down.
	insistent      int
	insistentSince time.Time
	out            []byte
}

func (w *wire) run(ctx context.Context) error {
	w.now = time.Now()
	w.lastRead = w.now
	defer w.dropSlab()
	defer func() { // the goodbye waits for a few bytes
		if w.gulping {
			lowWaterMark(w.sess.conn, 1)
		}
	}()
	if err := w.status(false); err != nil {
		return err
	}
	for {
		if w.s.closing.Load() {
			return nil
		}
		if err := w.fill(ctx); err != nil {
			return err
		}
		if err := w.parse(ctx); err != nil {
			return err
		}
	}
}

func (w *wire) dropSlab() {
	if w.cur != nil {
		w.cur.mem.Release()
		w.cur = nil
	}
}

// fill reads once from the socket, with room for at least the frame at hand.
func (w *wire) fill(ctx context.Context) error {
	need := frameHeader
	if w.cur != nil {
		size, err := frameSize(w.cur.buf[w.parsed:w.cur.n])
		if err != nil {
			return w.halt(err)
		}
		need = max(need, size)
		if int64(need) > w.s.opt.MaxEventBytes {
			return w.giant(ctx, need)
		}
	}
	if w.cur == nil || len(w.cur.buf)-w.parsed < need || len(w.cur.buf)-w.cur.n < minRead && w.parsed > 0 {
		if err := w.nextSlab(ctx, need); err != nil || w.cur == nil {
			return err
		}
	}
	n, err := w.read(w.cur.buf[w.cur.n:])
	w.cur.n += n
	return err
}

// nextSlab moves what is left of the current slab to a new one of at least size bytes.
func (w *wire) nextSlab(ctx context.Context, size int) error {
	next := w.s.slabs.get(size + minRead)
	for next == nil {
		// The budget is spent: reading stops, the status does not.
		if w.s.closing.Load() {
			w.dropSlab()
			return nil
		}
		if err := w.pause(ctx, w.s.slabs.freed); err != nil {
			return err
		}
		next = w.s.slabs.get(size + minRead)
	}
	if w.cur != nil {
		next.n = copy(next.buf, w.cur.buf[w.parsed:w.cur.n])
		w.dropSlab()
	}
	w.cur, w.parsed = next, 0
	return nil
}

// pause waits for a signal while the clockwork goes on.
func (w *wire) pause(ctx context.Context, signal <-chan struct{}) error {
	timer := time.NewTimer(wake)
	defer timer.Stop()
	select {
	case <-signal:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// Nothing is read while paused, so silence of the wire proves nothing.
	w.now = time.Now()
	w.lastRead, w.asked = w.now, false
	return w.tick()
}

// read reads once. It returns without data when the clockwork needs a look.
func (w *wire) read(p []byte) (int, error) {
	if wait := w.pace(); w.deadline.Sub(w.now) < wait/2 {
		w.deadline = w.now.Add(wait)
		if err := w.sess.conn.SetReadDeadline(w.deadline); err != nil {
			return 0, err
		}
	}
	n, err := w.sess.read.Read(p)
	w.now = time.Now()
	if n > 0 {
		w.lastRead, w.asked = w.now, false
	}
	w.spell.took(n, w.now)
	if err != nil {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		w.deadline = time.Time{}
	}
	return n, w.tick()
}

// halt says that the stream cannot be understood; a reconnect would bring the same bytes.
func (w *wire) halt(err error) error {
	return &event.Error{
		Class: event.Halt, What: fmt.Sprintf("slot %s: the stream near %s cannot be understood", w.s.opt.Slot, w.edge.received),
		Remedy: "nothing was confirmed past it; report it with the server's version, and check for a proxy between walrelay and Postgres",
		Anchor: "undecodable", Cause: err,
	}
}
