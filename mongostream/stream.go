package mongostream

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// Stream follows one collection. It satisfies relay.Source.
//
// Three goroutines work for it: the pump owns the change stream, the keeper owns the
// record (lease, position), and the caller of Next takes events apart. What they
// share are the atomics below and the channel of chunks.
type Stream struct {
	opt    Options
	obs    Observer
	holder string
	began  time.Time // what the moments below are counted from, by our own clock

	chunks chan chunk
	dec    *reader // used by Next alone
	memory budget

	finishing atomic.Bool
	finish    chan struct{} // closed by Finish
	finishOne sync.Once
	closing   atomic.Bool
	closed    chan struct{} // closed by Close
	closeOne  sync.Once
	cancel    context.CancelCauseFunc
	done      sync.WaitGroup
	pumpDone  chan struct{}

	client struct {
		sync.Mutex
		client *mongo.Client // nil: not connected
	}

	tenure tenure

	// The ladder. Times are those that tokens begin with.
	server    atomic.Uint64
	received  atomic.Uint64
	safe      atomic.Pointer[string] // Confirm was told, hex digits
	saved     atomic.Pointer[string] // is in the record
	lastEvent atomic.Pointer[string] // end of the newest transaction that had events for us

	handed     atomic.Int64 // events handed out
	collection atomic.Pointer[bson.Binary]
	unusual    unusual
	lost       atomic.Pointer[error] // the source was lost to another reader

	over       atomic.Bool // the error that ended the stream was handed out: nothing more is read
	nudged     atomic.Bool
	keeperWake chan struct{}
}

// Open prepares a stream and starts its goroutines; it connects in the background.
func Open(opt Options, obs Observer) (*Stream, error) {
	opt = opt.WithDefaults()
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	s := &Stream{
		opt: opt, obs: obs, began: time.Now(),
		// Two streams of one process are two holders.
		holder:     opt.Holder + "/" + rand.Text()[:8],
		chunks:     make(chan chunk, 4),
		finish:     make(chan struct{}),
		closed:     make(chan struct{}),
		pumpDone:   make(chan struct{}),
		keeperWake: make(chan struct{}, 1),
	}
	s.memory.most, s.memory.freed = opt.InFlightBytes, make(chan struct{}, 1)
	s.dec = newReader(s)
	ctx, cancel := context.WithCancelCause(context.Background())
	s.cancel = cancel
	s.done.Go(func() { s.keep(ctx) })
	s.done.Go(func() { s.watch(ctx) })
	s.done.Go(func() {
		defer close(s.pumpDone)
		s.pump(ctx)
	})
	return s, nil
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
	s.safe.Store(&pos.Token)
	s.wakeKeeper()
}

// Nudge asks for a sign from the server where its log ends: an idle stream's position
// only moves when something is written, so the lease is renewed at once. It does not block.
func (s *Stream) Nudge() {
	s.nudged.Store(true)
	s.wakeKeeper()
}

// Remembered reports whether a process that starts now would be brought nothing again that
// this one handed out at or below at. It asks no server.
func (s *Stream) Remembered(at event.Position) bool {
	saved, last := s.saved.Load(), s.lastEvent.Load()
	return saved != nil && at.Token <= *saved || last == nil || saved != nil && *last <= *saved // idle, positions follow in strides
}

func (s *Stream) wakeKeeper() {
	select {
	case s.keeperWake <- struct{}{}:
	default:
	}
}

// errClosed is the cause when a stream's goroutines are told to end.
var errClosed = errors.New("the stream was closed")

// Close stores the last confirmed position, lets the next reader in, and ends the
// connection. After ctx it gives up on being polite; nothing is lost by that, what was stored
// before stays so.
func (s *Stream) Close(ctx context.Context) error {
	s.Finish()
	s.closeOne.Do(func() {
		s.closing.Store(true)
		close(s.closed)
	})
	s.wakeKeeper()
	ended := make(chan struct{})
	go func() {
		s.done.Wait()
		close(ended)
	}()
	defer s.drop()
	defer s.cancel(errClosed)
	select {
	case <-ended:
		s.hangUp()
		return nil
	case <-ctx.Done():
		s.cancel(errClosed)
		<-ended
		s.hangUp()
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

// Progress is the stream's part of the ladder. Its LSNs are cluster times: seconds in the
// upper half, the increment in the lower.
func (s *Stream) Progress() event.Progress {
	return event.Progress{
		Server: event.LSN(s.server.Load()), Received: event.LSN(s.received.Load()),
		Published: lsnOf(s.safe.Load()), Confirmed: lsnOf(s.saved.Load()),
	}
}

func lsnOf(token *string) event.LSN {
	if token == nil {
		return 0
	}
	return lsn(tokenTime(*token))
}

func lsn(t bson.Timestamp) event.LSN { return event.LSN(uint64(t.T)<<32 | uint64(t.I)) }

// InFlightBytes is the memory that is read into or aliased by events under way.
func (s *Stream) InFlightBytes() int64 { return s.memory.used.Load() }

// connect gives the client, made when it is first needed and made anew after hangUp.
func (s *Stream) connect(ctx context.Context) (*mongo.Client, error) {
	s.client.Lock()
	defer s.client.Unlock()
	if s.client.client != nil {
		return s.client.client, nil
	}
	client, err := Connect(ctx, s.opt)
	if err == nil {
		s.client.client = client
	}
	return client, err
}

// hangUp ends all connections: the next use logs in anew.
func (s *Stream) hangUp() {
	s.client.Lock()
	client := s.client.client
	s.client.client = nil
	s.client.Unlock()
	if client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = client.Disconnect(ctx)
}

// state reports a state, with the reason where it is not a good one.
func (s *Stream) state(st event.State, c event.Condition) {
	if s.obs.State != nil {
		s.obs.State(st, c)
	}
}

func (s *Stream) warn(key string, c event.Condition) {
	if s.obs.Warning != nil {
		s.obs.Warning(key, c)
	}
}
