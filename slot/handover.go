package slot

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/walrelay/walrelay/event"
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
		case msgNotice:
			if err := noticeError(body, w.s.opt); err != nil {
				if herr := w.handOver(ctx, b[w.parsed:off], 0); herr != nil {
					return herr
				}
				return err
			}
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
	w.s.insists.Store(w.insistent >= 2)
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
