package mongostream

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/document"
)

const (
	// batchEvents bounds the events of a batch: their structs stay in the processor's cache.
	batchEvents = 256
	// scratchSize is allocated at a time for values that had to be made (payloads in JSON);
	// events keep pointing into it.
	scratchSize = 64 << 10
	// tokensSize is allocated at a time for tokens.
	tokensSize = 16 << 10
)

// reader turns answers of the server into batches. Only the caller of Next uses it.
type reader struct {
	s    *Stream
	docs *document.Reader

	cur   chunk
	rest  []byte // of cur.events
	taken bool   // cur has said what it says besides events
	err   error

	batch   event.Batch
	scratch []byte
	tokens  strings.Builder
	floor   string // events at or below it were handed out before

	cut     cutter
	ignored map[string]int
}

func newReader(s *Stream) *reader {
	return &reader{
		s: s, taken: true, ignored: map[string]int{},
		batch: event.Batch{Events: make([]event.Event, 0, batchEvents)},
		docs: document.New(document.Options{
			Schema: s.opt.Schema, Extra: s.opt.Extra, Format: s.opt.Format, Relation: s.opt.Namespace(), MaxPayload: s.opt.MaxEventBytes,
		}),
	}
}

func (r *reader) next(ctx context.Context) (*event.Batch, error) {
	for {
		if r.err != nil {
			return nil, r.err
		}
		if r.s.finishing.Load() && !r.cut.open {
			return nil, io.EOF
		}
		if err := r.reigns(ctx); err != nil {
			return nil, err
		}
		if len(r.rest) == 0 && r.taken {
			r.cur.release()
			r.cur = chunk{}
			if err := r.take(ctx); err != nil {
				return nil, err
			}
			continue
		}
		r.batch.Events, r.batch.Spans = r.batch.Events[:0], r.batch.Spans[:0]
		r.err = r.decode()
		r.note()
		r.report()
		if len(r.batch.Spans) > 0 {
			r.batch.Memory = r.cur.mem
			if r.cur.mem == nil {
				r.batch.Memory = event.NewMemory(nil)
			} else {
				r.batch.Memory.Retain(1)
			}
			return &r.batch, nil
		}
	}
}

// reigns waits while the lease has run out and is not yet renewed: what is queued
// may have been handed out by another reader.
func (r *reader) reigns(ctx context.Context) error {
	s := r.s
	for s.opt.writesRecord() && !s.reigns() && s.tenure.until.Load() != 0 || s.lost.Load() != nil {
		if lost := s.lost.Load(); lost != nil {
			r.err = *lost
			return r.err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.closed:
			return io.EOF
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// take waits for the next chunk.
func (r *reader) take(ctx context.Context) error {
	finish := r.s.finish
	if r.cut.open {
		finish = nil
	}
	select {
	case c := <-r.s.chunks:
		if c.err != nil {
			r.err = c.err
			r.s.over.Store(true)
			return c.err
		}
		if c.floor != nil {
			r.floor = *c.floor
		}
		r.cur, r.rest, r.taken = c, c.events, false
		return nil
	case <-finish:
		return io.EOF
	case <-r.s.closed:
		return io.EOF
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// decode takes events apart until the batch is full, the answer is used up or the
// stream is to end at the boundary at hand.
func (r *reader) decode() error {
	var c change
	for len(r.rest) > 0 && len(r.batch.Events) < batchEvents {
		var doc []byte
		doc, r.rest = nextEvent(r.rest)
		if err := c.read(doc); err != nil {
			r.batch.Spans = r.cut.pause(r.batch.Spans)
			return r.halt(err)
		}
		r.change(&c)
		if r.s.finishing.Load() && !r.cut.open {
			return nil
		}
	}
	if len(r.rest) > 0 {
		r.batch.Spans = r.cut.pause(r.batch.Spans)
		return nil
	}
	r.taken = true
	if r.cur.count > 0 || r.cur.end == nil {
		// The answer after this one says whether the transaction at hand goes on.
		r.batch.Spans = r.cut.pause(r.batch.Spans)
		return nil
	}
	r.batch.Spans = r.cut.idle(r.batch.Spans, r.position(tokenBytes(r.cur.end)))
	r.s.unusual.note(r.cur.end)
	return nil
}

// change deals with one event of the stream.
func (r *reader) change(c *change) {
	if r.floor != "" {
		if string(c.token) <= r.floor {
			r.ignored["repeated"]++
			return
		}
		r.floor = ""
	}
	pos := r.position(c.token)
	r.s.unusual.note(c.id)
	r.batch.Spans = r.cut.begin(r.batch.Spans, c)
	if string(c.op) != opInsert || c.doc == nil {
		r.ignored[string(c.op)]++
		if string(c.op) == opInvalidate && r.s.opt.OnDrop == DropContinue {
			r.batch.Spans = r.cut.event(r.batch.Spans, pos, false)
		}
		return
	}
	r.batch.Spans = r.cut.event(r.batch.Spans, pos, r.document(c, pos))
}

// document makes an event of an inserted document and reports whether it is one for us.
func (r *reader) document(c *change, pos event.Position) bool {
	n := len(r.batch.Events)
	ev := &r.batch.Events[:n+1][n]
	ev.Commit, ev.Ordinal, ev.CommitMicros, ev.Xid = pos, r.cut.ordinal, c.micros(), 0
	var outcome document.Outcome
	r.scratch, outcome = r.docs.Append(r.room(len(c.doc)), c.doc, ev)
	switch {
	case outcome == document.Publish, outcome == document.Refused:
	case outcome == document.Deferred && !r.s.opt.writesRows():
		// Nobody would come back for it.
	default:
		r.ignored[outcome.String()]++
		return false
	}
	r.batch.Events = r.batch.Events[:n+1]
	return true
}

// room is memory for what must be written of a document of that size: JSON, as a rule, takes
// less than twice the BSON.
func (r *reader) room(size int) []byte {
	if need := 2*size + 1<<10; cap(r.scratch)-len(r.scratch) < need {
		r.scratch = make([]byte, 0, max(scratchSize, need))
	}
	return r.scratch
}

// position copies a token: positions outlive the answer that they came in.
func (r *reader) position(token []byte) event.Position {
	if r.tokens.Cap()-r.tokens.Len() < len(token) {
		r.tokens = strings.Builder{}
		r.tokens.Grow(max(tokensSize, len(token)))
	}
	from := r.tokens.Len()
	r.tokens.Write(token)
	return event.AtToken(r.tokens.String()[from:])
}

// halt says that the stream cannot be understood; reading again would bring the same bytes.
func (r *reader) halt(err error) error {
	return &event.Error{
		Class: event.Halt, Anchor: AnchorUndecodable, Cause: err,
		What:   fmt.Sprintf("the change stream of %s after %s cannot be understood", r.s.opt.Namespace(), r.cut.last),
		Remedy: "nothing was confirmed past it; report it with the server's version, and check for a proxy between walrelay and MongoDB",
	}
}

// note tells the keeper how far events go.
func (r *reader) note() {
	n := len(r.batch.Events)
	if n == 0 {
		return
	}
	last := r.batch.Events[n-1].Commit.Token
	r.s.handed.Add(int64(n))
	r.s.lastEvent.Store(&last)
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
