package slot

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/decoder"
	"github.com/walrelay/walrelay/event"
)

// Observer hears what happens to a stream. Every field may be nil. The calls
// come from the stream's own goroutines and must not block.
type Observer struct {
	// State is called when the state or its reason changes.
	State func(event.State, event.Condition)
	// Slot is called with what the server says of the slot, on a timer.
	Slot func(event.SlotReport)
	// Warning is something an operator should know of that stops nothing; the
	// same key replaces its predecessor, an empty What takes it back.
	Warning func(key string, c event.Condition)
	// Ignored counts messages that are not events for us, by reason.
	Ignored func(reason string, n int)
	// Reconnect is called with the error that ended a session.
	Reconnect func(error)
	// Started is called when replication began: where, and why there.
	Started func(at event.LSN, note string)
	// Beat is called by the pump and the keeper whenever they step.
	PumpBeat, KeeperBeat func()
}

// Stream reads one slot. It satisfies relay.Source.
//
// Three goroutines work for it: the pump owns the replication connection, the
// keeper owns an ordinary connection (marker, publication, slot report), and
// the caller of Next decodes. What they share are the atomics below and the
// channel of chunks.
type Stream struct {
	opt   Options
	obs   Observer
	slabs *slabPool

	chunks chan chunk
	dec    *reader // used by Next alone

	finishing atomic.Bool
	finish    chan struct{} // closed by Finish
	closing   atomic.Bool
	cancel    context.CancelCauseFunc
	done      sync.WaitGroup
	pumpDone  chan struct{}
	final     chan struct{} // closed when the keeper has settled its last word
	finishOne sync.Once

	// The ladder, all LSNs.
	server        atomic.Uint64 // end of the server's log
	received      atomic.Uint64 // last complete transaction or idle place handed over
	safe          atomic.Uint64 // Confirm was told
	settled       atomic.Uint64 // may be told to the server: marker written, publication checked
	sentConfirmed atomic.Uint64 // was told to the server
	lastEvent     atomic.Uint64 // end of the newest transaction that had events for us

	streaming      atomic.Bool           // a session is in copy mode
	streamed       atomic.Bool           // the last session lasted for a while
	began          atomic.Bool           // a session began: what is known of the slot is old
	aborted        atomic.Pointer[error] // ends the session: what the keeper found
	insists        atomic.Bool           // the server asks again although it was answered: its last act
	serverStopping atomic.Int64          // unix nanoseconds since when the server refuses connections; 0: it does not
	replyAsked     atomic.Bool
	nudged         atomic.Bool // the server is to be asked where it is
	keeperWake     chan struct{}

	identity struct {
		sync.Mutex
		known Marker // of the running session: system, timeline, slot, publication's fingerprint
	}
}

// Open prepares a stream and starts its goroutines; it connects in the background.
func Open(opt Options, obs Observer) (*Stream, error) {
	opt = opt.WithDefaults()
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if _, err := decoder.NewMapper(opt.mapperOptions(&Facts{})); err != nil {
		return nil, err
	}
	s := &Stream{
		opt: opt, obs: obs,
		slabs:      newSlabPool(opt.InFlightBytes),
		chunks:     make(chan chunk, 64),
		finish:     make(chan struct{}),
		pumpDone:   make(chan struct{}),
		final:      make(chan struct{}),
		keeperWake: make(chan struct{}, 1),
	}
	s.dec = newReader(s)
	ctx, cancel := context.WithCancelCause(context.Background())
	s.cancel = cancel
	s.done.Go(func() { s.keep(ctx) })
	s.done.Go(func() {
		defer close(s.pumpDone)
		s.pump(ctx)
	})
	return s, nil
}

// mapperOptions say how rows become events, on the server that f describes.
func (o *Options) mapperOptions(f *Facts) decoder.MapperOptions {
	m := decoder.MapperOptions{
		Schema: o.Schema, ExtraColumns: o.ExtraColumns, System: f.SystemID,
		Messages: decoder.MessageOptions{Prefixes: o.Messages, AllowNonTransactional: o.AllowNonTransactional},
	}
	for _, t := range append(o.Tables[:len(o.Tables):len(o.Tables)], f.LeafTables...) {
		m.Tables = append(m.Tables, decoder.Table{Schema: t.Schema, Name: t.Name})
	}
	return m
}

// Next waits for the next batch; see relay.Source.
func (s *Stream) Next(ctx context.Context) (*event.Batch, error) { return s.dec.next(ctx) }

// Finish asks for an end at the next transaction boundary.
func (s *Stream) Finish() {
	s.finishOne.Do(func() {
		s.finishing.Store(true)
		close(s.finish)
	})
}

// Confirm takes the position below which everything is durably published.
func (s *Stream) Confirm(pos event.Position) {
	s.safe.Store(uint64(pos.LSN))
	s.wakeKeeper()
}

// Nudge asks the server to say where it is, so that a position that nothing more
// comes for is reached soon. It does not block.
func (s *Stream) Nudge() { s.nudged.Store(true) }

// Remembered reports whether a process that starts now would be brought nothing again that
// this one handed out at or below at. It asks no server.
func (s *Stream) Remembered(at event.Position) bool {
	settled := s.settled.Load()
	return uint64(at.LSN) <= settled || s.lastEvent.Load() <= settled // idle, positions follow in strides
}

func (s *Stream) wakeKeeper() {
	select {
	case s.keeperWake <- struct{}{}:
	default:
	}
}

// confirmed is what the server may be told.
func (s *Stream) confirmed() event.LSN { return event.LSN(s.settled.Load()) }

func (s *Stream) advanceServer(end event.LSN) {
	if uint64(end) > s.server.Load() {
		s.server.Store(uint64(end))
	}
}

// errClosed is the cause when a stream's goroutines are told to end.
var errClosed = errors.New("the stream was closed")

// Close settles the last confirmed position (marker first, then the server) and
// ends both connections. After ctx it gives up on being polite; nothing is lost
// by that, what was confirmed before stays so.
func (s *Stream) Close(ctx context.Context) error {
	s.Finish()
	s.closing.Store(true)
	s.wakeKeeper()
	ended := make(chan struct{})
	go func() {
		s.done.Wait()
		close(ended)
	}()
	defer s.cancel(errClosed)
	defer s.drop()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		s.cancel(errClosed)
		<-ended
		return context.Cause(ctx)
	}
}

// drop releases what nobody will read any more.
func (s *Stream) drop() {
	for {
		select {
		case c := <-s.chunks:
			c.release()
		default:
			return
		}
	}
}

// Progress is the stream's part of the ladder; Published is the caller's last
// Confirm.
func (s *Stream) Progress() event.Progress {
	return event.Progress{
		Server:    event.LSN(s.server.Load()),
		Received:  event.LSN(s.received.Load()),
		Published: event.LSN(s.safe.Load()),
		Confirmed: event.LSN(s.sentConfirmed.Load()),
	}
}

// InFlightBytes is the memory that is read into or aliased by events under way.
func (s *Stream) InFlightBytes() int64 { return s.slabs.used() }

// state reports a state, with the reason where it is not a good one.
func (s *Stream) state(st event.State, c event.Condition) {
	if s.obs.State != nil {
		s.obs.State(st, c)
	}
}

// wireTimeout is how long the wire may be silent: the server speaks at least
// that often when it is asked to.
func (s *Stream) wireTimeout(server time.Duration) time.Duration {
	if server <= 0 {
		return s.opt.WireTimeout
	}
	return min(max(server, 10*time.Second), 60*time.Second, max(s.opt.WireTimeout, 10*time.Second))
}
