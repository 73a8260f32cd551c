package slot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
)

// chunk is what the pump hands over: whole frames, in the order they came.
type chunk struct {
	frames []byte
	mem    *event.Memory // counts this chunk as a user
	// elided is the size of what was left out of the one frame of this chunk; see shrinkGiant.
	elided int64
	// fresh says that a new connection begins, to the server it describes: what the
	// old one said of relations is void.
	fresh *Facts
	// err ends the stream.
	err error
}

func (c chunk) release() {
	if c.mem != nil {
		c.mem.Release()
	}
}

// errLeft means that the relay left the stream so that the server can stop.
var errLeft error = &event.Error{
	Class: event.Retry, Anchor: "server-stopping",
	What:   "the relay left the stream of a server that is shutting down, because Kafka does not acknowledge what the server waits for",
	Remedy: "nothing is lost: it goes on when the server is back; look at the broker",
}

// wire is the pump's view of one session.
type wire struct {
	s    *Stream
	sess *session
	edge edge

	cur    *slab
	parsed int // cur.buf[:parsed] has been handed over

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
	if w.deadline.Sub(w.now) < wake/2 {
		w.deadline = w.now.Add(wake)
		if err := w.sess.conn.SetReadDeadline(w.deadline); err != nil {
			return 0, err
		}
	}
	n, err := w.sess.read.Read(p)
	w.now = time.Now()
	if n > 0 {
		w.lastRead, w.asked = w.now, false
	}
	if err != nil {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		w.deadline = time.Time{}
	}
	return n, w.tick()
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
	stopping := w.s.serverStopping.Load()
	switch {
	case stopping != 0 && w.now.Sub(time.Unix(0, stopping)) >= leaveAfter,
		w.insistent >= 10 && w.now.Sub(w.insistentSince) >= leaveAfter:
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

// parse hands over the whole frames that have come.
func (w *wire) parse(ctx context.Context) error {
	if w.cur == nil {
		return nil
	}
	b := w.cur.buf[:w.cur.n]
	off := w.parsed
	for {
		size, err := frameSize(b[off:])
		if err != nil {
			return w.halt(err)
		}
		if size == 0 || size > len(b)-off {
			break
		}
		body := b[off+frameHeader : off+size]
		switch b[off] {
		case msgCopyData:
			if err := w.copyData(body); err != nil {
				return w.halt(err)
			}
		case msgError:
			err := serverError(body)
			if herr := w.handOver(ctx, b[w.parsed:off], 0); herr != nil {
				return herr
			}
			return err
		case msgCopyDone:
			if err := w.handOver(ctx, b[w.parsed:off], 0); err != nil {
				return err
			}
			return fmt.Errorf("the server ended the stream: %w", io.EOF)
		}
		off += size
	}
	frames := b[w.parsed:off]
	w.parsed = off
	if err := w.handOver(ctx, frames, 0); err != nil {
		return err
	}
	return w.tick()
}

func (w *wire) copyData(payload []byte) error {
	if len(payload) == 0 {
		return fmt.Errorf("%w: empty CopyData", errFrame)
	}
	switch payload[0] {
	case kindXLogData:
		if len(payload) < xlogHeader {
			return fmt.Errorf("%w: XLogData of %d bytes", errFrame, len(payload))
		}
		w.s.advanceServer(lsnAt(payload[9:]))
		w.edge.message(payload[xlogHeader:])
	case kindKeepalive:
		k, err := parseKeepalive(payload)
		if err != nil {
			return err
		}
		w.s.advanceServer(k.end)
		w.edge.keepalive(k.end)
		if k.reply {
			w.asksForReply()
		}
	default:
		return fmt.Errorf("%w: CopyData of kind %q", errFrame, payload[0])
	}
	return nil
}

// asksForReply notes a request. The first of a row is answered at the next
// tick; a server that insists is answered at the throttled pace.
func (w *wire) asksForReply() {
	w.wantsReply = true
	w.s.replyAsked.Store(true)
	w.s.wakeKeeper()
	if w.insistent == 0 || w.now.Sub(w.lastStatus) > time.Second {
		w.insistent, w.insistentSince = 0, w.now
	}
	w.insistent++
}

// handOver gives frames to the reader's side; the slab gets a user for them.
func (w *wire) handOver(ctx context.Context, frames []byte, elided int64) error {
	if len(frames) == 0 {
		return nil
	}
	w.cur.mem.Retain(1)
	if err := w.send(ctx, chunk{frames: frames[:len(frames):len(frames)], mem: &w.cur.mem, elided: elided}); err != nil {
		return err
	}
	// Only what was handed over counts as received: a reconnect starts there.
	w.s.received.Store(uint64(w.edge.received))
	return nil
}

func (w *wire) send(ctx context.Context, c chunk) error {
	select {
	case w.s.chunks <- c:
		return nil
	default:
	}
	timer := time.NewTicker(wake)
	defer timer.Stop()
	for {
		select {
		case w.s.chunks <- c:
			return nil
		case <-timer.C:
			w.now = time.Now()
			w.lastRead, w.asked = w.now, false
			if err := w.tick(); err != nil {
				c.release()
				return err
			}
			if w.s.closing.Load() {
				c.release()
				return nil
			}
		case <-ctx.Done():
			c.release()
			return context.Cause(ctx)
		}
	}
}

// giant replaces the frame at hand, which is larger than an event may be, by a
// small one that names it.
func (w *wire) giant(ctx context.Context, size int) error {
	head := w.cur.buf[w.parsed:w.cur.n]
	rest := io.LimitReader(readerFunc(func(p []byte) (int, error) {
		for {
			n, err := w.read(p)
			if n > 0 || err != nil {
				return n, err
			}
			if w.s.closing.Load() {
				return 0, net.ErrClosed
			}
		}
	}), int64(size-len(head)))
	small, elided, err := shrinkGiant(io.MultiReader(bytes.NewReader(head), rest))
	if err != nil {
		return err
	}
	w.dropSlab()
	w.parsed = 0
	if small == nil {
		return nil
	}
	if err := w.nextSlab(ctx, len(small)); err != nil || w.cur == nil {
		return err
	}
	w.cur.n = copy(w.cur.buf, small)
	w.parsed = w.cur.n
	if err := w.copyData(w.cur.buf[frameHeader:w.cur.n]); err != nil {
		return w.halt(err)
	}
	return w.handOver(ctx, w.cur.buf[:w.cur.n], elided)
}

// halt says that the stream cannot be understood; a reconnect would bring the same bytes.
func (w *wire) halt(err error) error {
	return &event.Error{
		Class: event.Halt, What: fmt.Sprintf("slot %s: the stream near %s cannot be understood", w.s.opt.Slot, w.edge.received),
		Remedy: "nothing was confirmed past it; report it with the server's version, and check for a proxy between walrelay and Postgres",
		Anchor: "undecodable", Cause: err,
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
