package slot

import (
	"context"
	"fmt"
	"io"

	"github.com/walrelay/walrelay/decoder"
	"github.com/walrelay/walrelay/event"
)

const (
	// batchEvents bounds the events of a batch: their structs stay in the processor's cache.
	batchEvents = 256
	// scratchSize is allocated at a time for values that had to be made (ids of
	// messages, printed binary columns); events keep pointing into it.
	scratchSize = 64 << 10
	scratchMin  = 4 << 10
)

// reader is the decoding side of a stream: it turns chunks into batches. Only
// the caller of Next uses it.
type reader struct {
	s      *Stream
	dec    *decoder.Decoder
	mapper *decoder.Mapper

	cur chunk
	off int // cur.frames[:off] is decoded
	err error

	batch   event.Batch
	scratch []byte

	tx      decoder.Tx
	inTx    bool
	sent    int64     // when the server sent the message at hand, microseconds since 1970
	emitted uint32    // events of the transaction at hand that were handed out
	skip    uint32    // events of it that were handed out on an earlier connection
	reached event.LSN // the end of the last span that was complete

	// torn is the transaction that a broken connection cut: its first events are
	// out, the server will send it whole again.
	torn struct {
		commit event.LSN // zero: none
		events uint32
	}
	ignored map[string]int
}

func newReader(s *Stream) *reader {
	return &reader{
		s: s, dec: decoder.New(decoder.Options{Protocol: 1}),
		batch:   event.Batch{Events: make([]event.Event, 0, batchEvents)},
		ignored: map[string]int{},
	}
}

func (r *reader) next(ctx context.Context) (*event.Batch, error) {
	for {
		if r.err != nil {
			return nil, r.err
		}
		if r.s.finishing.Load() && r.whole() {
			return nil, io.EOF
		}
		if r.off == len(r.cur.frames) {
			r.cur.release()
			r.cur, r.off = chunk{}, 0
			if err := r.take(ctx); err != nil {
				return nil, err
			}
			continue
		}
		r.batch.Events, r.batch.Spans = r.batch.Events[:0], r.batch.Spans[:0]
		r.err = r.decode()
		r.report()
		if len(r.batch.Spans) > 0 {
			r.batch.Memory = r.cur.mem
			r.batch.Memory.Retain(1)
			return &r.batch, nil
		}
	}
}

// whole reports whether no transaction is half handed out.
func (r *reader) whole() bool { return !r.inTx && r.torn.commit == 0 }

// take waits for the next chunk.
func (r *reader) take(ctx context.Context) error {
	finish := r.s.finish
	if !r.whole() {
		finish = nil
	}
	select {
	case c := <-r.s.chunks:
		if c.fresh != nil {
			if r.err = r.reconnected(c.fresh); r.err != nil {
				return r.err
			}
		}
		if c.err != nil {
			r.err = c.err
			return c.err
		}
		r.cur = c
		return nil
	case <-finish:
		return io.EOF
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reconnected forgets what the old connection said, and remembers the
// transaction that it left torn.
func (r *reader) reconnected(f *Facts) error {
	r.dec.Reset()
	opt := r.s.opt.mapperOptions(f)
	mapper, err := decoder.NewMapper(opt)
	if err != nil {
		return err
	}
	r.mapper = mapper
	if r.inTx && r.emitted > 0 {
		r.torn.commit, r.torn.events = r.tx.Commit.LSN, r.emitted
	}
	r.inTx = false
	return nil
}

// decode turns frames into events until the batch is full, the chunk is used up
// or the stream is to end at the boundary at hand.
func (r *reader) decode() error {
	span := event.Span{}
	frames := r.cur.frames
	for r.off < len(frames) && len(r.batch.Events) < batchEvents {
		size, _ := frameSize(frames[r.off:]) // the pump saw that it is whole
		frame := frames[r.off : r.off+size]
		r.off += size
		if frame[0] != msgCopyData {
			continue // a notice or parameter of the server
		}
		payload := frame[frameHeader:]
		if payload[0] == kindKeepalive {
			if r.whole() {
				r.idle(lsnAt(payload[1:]))
			}
			continue
		}
		r.sent = microsAt(payload[17:])
		msg, err := r.dec.Decode(payload[xlogHeader:], lsnAt(payload[1:]))
		if err == nil {
			err = r.message(msg, &span)
		}
		if err != nil {
			r.endSpan(&span)
			return r.halt(err)
		}
		if r.s.finishing.Load() && r.whole() {
			break
		}
	}
	r.endSpan(&span)
	return nil
}

func (r *reader) message(msg decoder.Message, span *event.Span) error {
	switch m := msg.(type) {
	case *decoder.Insert:
		ev := r.slot()
		outcome, scratch, err := r.mapper.Row(m, r.tx, ev, r.scratch)
		return r.take1(outcome, scratch, err, span)
	case *decoder.Begin:
		return r.begin(m)
	case *decoder.Commit:
		r.inTx = false
		span.Done, span.End = true, event.AtLSN(m.EndLSN)
		r.reached = max(r.reached, m.EndLSN)
		if r.emitted > 0 {
			r.s.lastEvent.Store(uint64(m.EndLSN))
		}
		r.endSpan(span)
	case *decoder.LogicalMessage:
		ev := r.slot()
		if !m.Transactional {
			// It stands alone: its own end is its place, and the server's clock its time.
			r.tx = decoder.Tx{Commit: event.AtLSN(m.LSN), CommitMicros: r.sent}
		}
		outcome, scratch, err := r.mapper.Message(m, r.tx, ev, r.scratch)
		before := len(r.batch.Events)
		if err := r.take1(outcome, scratch, err, span); err != nil || m.Transactional || len(r.batch.Events) == before {
			return err
		}
		// Outside of any transaction: a unit of its own, done at its own end.
		span.Done, span.End = true, event.AtLSN(m.LSN)
		r.reached = max(r.reached, m.LSN)
		r.s.lastEvent.Store(uint64(m.LSN))
		r.endSpan(span)
	case *decoder.Update:
		r.ignored["update"]++
	case *decoder.Delete:
		r.ignored["delete"]++
	case *decoder.Truncate:
		r.ignored["truncate"]++
	}
	// Relations are in the decoder's cache; types and origins say nothing to us; a
	// stray stream abort (Postgres 18 on protocol 1) has nothing to abort.
	return nil
}

// slot is the event that the next row is mapped into.
func (r *reader) slot() *event.Event {
	if cap(r.scratch)-len(r.scratch) < scratchMin {
		r.scratch = make([]byte, 0, scratchSize)
	}
	n := len(r.batch.Events)
	return &r.batch.Events[:n+1][n]
}

// take1 keeps the event that was mapped into slot, or not.
func (r *reader) take1(outcome decoder.Outcome, scratch []byte, err error, span *event.Span) error {
	r.scratch = scratch
	poison := err != nil && event.ClassOf(err) == event.Poison
	if err != nil && !poison {
		return err
	}
	if err == nil && outcome != decoder.Publish {
		r.ignored[outcome.String()]++
		return nil
	}
	r.tx.Ordinal++
	if r.tx.Ordinal <= r.skip {
		return nil // it went out before the connection broke
	}
	n := len(r.batch.Events)
	r.batch.Events = r.batch.Events[:n+1]
	r.batch.Events[n].Elided = r.cur.elided
	if poison {
		r.batch.Events[n].Refused = err
	}
	r.emitted++
	span.Events++
	return nil
}

func (r *reader) begin(m *decoder.Begin) error {
	r.inTx = true
	r.emitted, r.skip = 0, 0
	r.tx = decoder.Tx{Commit: event.AtLSN(m.FinalLSN), CommitMicros: m.CommitMicros, Xid: m.XID}
	if r.torn.commit == 0 {
		return nil
	}
	if m.FinalLSN != r.torn.commit {
		return &event.Error{
			Class: event.Halt, Fault: event.FaultGap, Anchor: "log-went-back",
			What: fmt.Sprintf("after a reconnect the server went on with the transaction at %s; the one at %s, of which %d events are published, did not come again",
				m.FinalLSN, r.torn.commit, r.torn.events),
			Remedy: "the server has lost committed log: compare the outbox with the topics before going on",
		}
	}
	r.skip = r.torn.events
	r.emitted = r.torn.events // it counts as one with events whatever comes
	r.torn.commit, r.torn.events = 0, 0
	return nil
}

// idle enters a place without events; a run of them is one span. After a reconnect the
// server reads from further back than it was asked to, and says so in its keepalives: that is
// behind what was handed out, and a position never goes back.
func (r *reader) idle(end event.LSN) {
	if end < r.reached {
		return
	}
	r.reached = end
	if n := len(r.batch.Spans); n > 0 {
		if last := &r.batch.Spans[n-1]; last.Done && last.Events == 0 {
			last.End = event.AtLSN(end)
			return
		}
	}
	r.batch.Spans = append(r.batch.Spans, event.Span{Done: true, End: event.AtLSN(end)})
}

// endSpan adds the span to the batch, if it says anything.
func (r *reader) endSpan(span *event.Span) {
	switch {
	case span.Done && span.Events == 0 && r.emitted == 0:
		r.idle(span.End.LSN)
	case span.Done || span.Events > 0:
		r.batch.Spans = append(r.batch.Spans, *span)
	}
	*span = event.Span{}
}

// halt adds where it happened to an error that ends the stream.
func (r *reader) halt(err error) error {
	if r.tx.Commit.LSN == 0 {
		return fmt.Errorf("slot %s: %w", r.s.opt.Slot, err)
	}
	return fmt.Errorf("slot %s, transaction committed at %s, event %d: %w", r.s.opt.Slot, r.tx.Commit, r.tx.Ordinal, err)
}

func (r *reader) report() {
	if len(r.ignored) == 0 {
		return
	}
	if r.s.obs.Ignored != nil {
		for reason, n := range r.ignored {
			r.s.obs.Ignored(reason, n)
		}
	}
	clear(r.ignored)
}
