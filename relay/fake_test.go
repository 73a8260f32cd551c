package relay

import (
	"context"
	"io"
	"sync"

	"github.com/walrelay/walrelay/event"
)

// span is one step of a scripted source.
type span struct {
	keys []string
	done bool
	end  event.LSN
}

// fakeSource plays spans, then waits for Finish, or ends with err.
type fakeSource struct {
	spans  []span
	err    error
	finish chan struct{}
	once   sync.Once
	torn   bool // Finish finds a transaction at hand that never ends
	closed bool
	live   int // memories not released

	mu        sync.Mutex
	confirmed []event.LSN
}

func newFakeSource(spans ...span) *fakeSource {
	return &fakeSource{spans: spans, finish: make(chan struct{})}
}

func (s *fakeSource) Next(ctx context.Context) (*event.Batch, error) {
	if len(s.spans) == 0 {
		if s.err != nil {
			return nil, s.err
		}
		finish := s.finish
		if s.torn {
			finish = nil
		}
		select {
		case <-finish:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	sp := s.spans[0]
	s.spans = s.spans[1:]
	s.mu.Lock()
	s.live++
	s.mu.Unlock()
	b := &event.Batch{
		Spans: []event.Span{{Events: len(sp.keys), Done: sp.done, End: event.AtLSN(sp.end)}},
		Memory: event.NewMemory(func() {
			s.mu.Lock()
			s.live--
			s.mu.Unlock()
		}),
	}
	for i, k := range sp.keys {
		var ev event.Event
		ev.Fields[event.Key] = []byte(k)
		ev.Ordinal = uint32(i)
		b.Events = append(b.Events, ev)
	}
	return b, nil
}

func (s *fakeSource) Finish() { s.once.Do(func() { close(s.finish) }) }

func (s *fakeSource) Confirm(pos event.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = append(s.confirmed, pos.LSN)
}

func (s *fakeSource) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *fakeSource) last() event.LSN {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.confirmed) == 0 {
		return 0
	}
	return s.confirmed[len(s.confirmed)-1]
}

// keyRouter makes the key the topic and the key; the key "poison" cannot be routed.
type keyRouter struct{}

func (keyRouter) Route(ev *event.Event, rec *event.Record, scratch []byte) ([]byte, error) {
	rec.Key = ev.Fields[event.Key]
	rec.Topic = string(rec.Key)
	if rec.Topic == "poison" {
		return scratch, &event.Error{Class: event.Poison, What: "cannot be routed"}
	}
	return scratch, nil
}

// fakePublisher holds every ticket until the test settles it.
type fakePublisher struct {
	result func(event.Ticket, error)

	mu      sync.Mutex
	taken   []string
	pending []held
	auto    bool // settle at once
	closed  bool
}

type held struct {
	key string
	t   event.Ticket
}

func (p *fakePublisher) Publish(_ context.Context, rec *event.Record, t event.Ticket) error {
	p.mu.Lock()
	p.taken = append(p.taken, string(rec.Key))
	if !p.auto {
		p.pending = append(p.pending, held{string(rec.Key), t})
	}
	auto := p.auto
	p.mu.Unlock()
	if auto {
		p.result(t, nil)
	}
	return nil
}

func (p *fakePublisher) Refuse(_ context.Context, _ *event.Record, t event.Ticket, why error) error {
	p.result(t, &event.Error{Class: event.Halt, What: "poison", Cause: why})
	return nil
}

// settle delivers the result of the first pending ticket with that key.
func (p *fakePublisher) settle(key string, err error) bool {
	p.mu.Lock()
	var t event.Ticket
	found := false
	for i, h := range p.pending {
		if h.key == key {
			t, found = h.t, true
			p.pending = append(p.pending[:i], p.pending[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	if found {
		p.result(t, err)
	}
	return found
}

func (p *fakePublisher) Close(ctx context.Context) error {
	for {
		p.mu.Lock()
		n := len(p.pending)
		p.closed = true
		p.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			p.mu.Lock()
			rest := p.pending
			p.pending = nil
			p.mu.Unlock()
			for _, h := range rest {
				p.result(h.t, &event.Error{Class: event.Retry, What: "closed before acknowledgement"})
			}
			return context.Cause(ctx)
		default:
			pause(ctx, 1e6)
		}
	}
}
