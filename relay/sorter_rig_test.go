package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
)

// database is a log with a clock, as two or three lines of a test need it.
type database struct {
	news   chan *event.Batch
	finish chan struct{}
	once   sync.Once
	turn   chan struct{} // closed: the session ends with event.ErrTurn

	mu        sync.Mutex
	end       event.LSN
	oldest    time.Time // begin of the open transaction; zero: none
	down      bool
	nudged    int
	confirmed event.LSN
	live      int
}

func newDatabase() *database {
	return &database{news: make(chan *event.Batch, 4096), finish: make(chan struct{}), turn: make(chan struct{}), end: 1}
}

// commit writes one transaction of events "key@stamp": the stamp in milliseconds of the
// bubble's time, or none.
func (d *database) commit(events ...string) {
	d.mu.Lock()
	d.end += 10
	end := d.end
	d.live++
	d.mu.Unlock()
	b := &event.Batch{Spans: []event.Span{{Events: len(events), Done: true, End: event.AtLSN(end)}}}
	var all [][]byte
	b.Memory = event.NewMemory(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.live--
		for _, bytes := range all { // they are the source's again
			clear(bytes)
		}
	})
	for i, e := range events {
		key, stamp, _ := strings.Cut(e, "@")
		ev := event.Event{Ordinal: uint32(i), CommitMicros: time.Now().UnixMicro(), Commit: event.AtLSN(end)}
		ev.Fields[event.Key], ev.Fields[event.Payload] = []byte(key), []byte(e)
		all = append(all, ev.Fields[event.Key], ev.Fields[event.Payload])
		if stamp != "" {
			ms, err := strconv.ParseInt(stamp, 10, 64)
			if err != nil {
				panic(err)
			}
			s, err := hlc.Pack(epoch.UnixMilli()+ms, 0)
			if err != nil {
				panic(err)
			}
			ev.Fields[event.HLC] = []byte(strconv.FormatUint(uint64(s), 10))
		}
		b.Events = append(b.Events, ev)
	}
	d.news <- b
}

// epoch is when a bubble begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (d *database) Next(ctx context.Context) (*event.Batch, error) {
	select {
	case b := <-d.news:
		return b, nil
	default:
	}
	d.mu.Lock()
	turn := d.turn
	d.mu.Unlock()
	select {
	case b := <-d.news:
		return b, nil
	case <-turn:
		return nil, event.ErrTurn
	case <-d.finish:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *database) Finish()                     { d.once.Do(func() { close(d.finish) }) }
func (d *database) Close(context.Context) error { return nil }
func (d *database) Nudge()                      { d.mu.Lock(); d.nudged++; d.mu.Unlock() }

func (d *database) Confirm(pos event.Position) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.confirmed = pos.LSN
}

func (d *database) reading(context.Context) (event.Reading, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return event.Reading{}, errors.New("down")
	}
	now := time.Now()
	r := event.Reading{NowMicros: now.UnixMicro(), OldestMicros: now.UnixMicro(), At: event.AtLSN(d.end)}
	if !d.oldest.IsZero() {
		r.OldestMicros = d.oldest.UnixMicro()
	}
	return r, nil
}

func (d *database) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *database) state() (confirmed event.LSN, live int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.confirmed, d.live
}

// stampRouter asks for the order of stamps. The key "poison" cannot be routed.
type stampRouter struct{ order event.Order }

func (r stampRouter) Route(ev *event.Event, rec *event.Record, scratch []byte) ([]byte, error) {
	*rec = event.Record{Topic: "t", Key: ev.Fields[event.Key], Value: ev.Fields[event.Payload], Order: r.order}
	if string(rec.Key) == "poison" {
		return scratch, &event.Error{Class: event.Poison, What: "cannot be routed"}
	}
	return scratch, nil
}

// sink notes what is published, and may hold results back.
type sink struct {
	result func(event.Ticket, error)
	shut   chan struct{} // not nil: Publish waits until it is closed

	mu  sync.Mutex
	log []string
}

func (p *sink) Publish(ctx context.Context, rec *event.Record, t event.Ticket) error {
	return p.take(ctx, string(rec.Value), rec, t)
}

func (p *sink) Refuse(ctx context.Context, rec *event.Record, t event.Ticket, _ error) error {
	return p.take(ctx, "refused "+string(rec.Value), rec, t)
}

func (p *sink) take(ctx context.Context, what string, rec *event.Record, t event.Ticket) error {
	if p.shut != nil {
		select {
		case <-p.shut:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for _, h := range rec.Headers {
		what += " " + h.Key + "=" + string(h.Value)
	}
	p.mu.Lock()
	p.log = append(p.log, what)
	p.mu.Unlock()
	p.result(t, nil)
	return nil
}

func (p *sink) Close(context.Context) error { return nil }

func (p *sink) out() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, " ")
}

func ordering() *Ordering {
	return &Ordering{
		Transaction: 10 * time.Second, Staged: 100 * time.Millisecond, ClockError: 100 * time.Millisecond, MaxDrift: time.Minute,
		BufferBytes: 1 << 20, Every: 50 * time.Millisecond, StallAfter: 5 * time.Second,
	}
}

type sortRig struct {
	*Relay
	sink *sink
	stop context.CancelFunc
	err  chan error
}

func sortFrom(o *Ordering, obs Observer, order event.Order, pub *sink, dbs ...*database) *sortRig {
	var feeds []Feed
	for i, d := range dbs {
		feeds = append(feeds, Feed{
			Name: fmt.Sprint("db", i), Open: func() (Source, error) { return d, nil }, Router: stampRouter{order}, Reading: d.reading,
		})
	}
	r := New(Options{Order: o, Window: 64, OrderWindow: 64, Grace: 10 * time.Second}, obs, feeds)
	pub.result = r.Result
	ctx, cancel := context.WithCancel(context.Background())
	g := &sortRig{Relay: r, sink: pub, stop: cancel, err: make(chan error, 1)}
	go func() { g.err <- r.Run(ctx, pub) }()
	return g
}

func (g *sortRig) want(t *testing.T, what string) {
	t.Helper()
	synctest.Wait()
	if got := g.sink.out(); got != what {
		t.Fatalf("at %s published: %s\nwant: %s", time.Since(epoch), got, what)
	}
}

func (g *sortRig) end(t *testing.T, dbs ...*database) {
	t.Helper()
	g.stop()
	if err := <-g.err; err != nil {
		t.Fatalf("the end: %v", err)
	}
	for i, d := range dbs {
		if confirmed, live := d.state(); confirmed != d.end && d.end != 1 || live != 0 {
			t.Errorf("db%d confirmed %s of %s, %d batches keep their memory", i, confirmed, d.end, live)
		}
	}
}

func sleep(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) }
