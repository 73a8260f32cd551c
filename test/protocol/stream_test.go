package protocol

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

func dial(ctx context.Context, url string) (*pgx.Conn, error) { return pgx.Connect(ctx, url) }

// stream is walrelay's reader at the same place.
type stream struct {
	t      *testing.T
	s      *slot.Stream
	states chan event.State
	halt   chan event.Condition
	open   bool
}

// options read the place's table: its columns are those of the basic preset by other names.
func (p *place) options(t *testing.T) slot.Options {
	t.Helper()
	schema, err := event.NewSchema(event.Basic, map[event.Field]string{
		event.RowID: "key", event.EventID: "key", event.Route: "key", event.Key: "key", event.Type: "key", event.Payload: "body",
	})
	if err != nil {
		t.Fatal(err)
	}
	return slot.Options{
		Source: "orders", DSN: p.srv.URL(p.db), Slot: p.slot, Publication: p.publication,
		Tables: []slot.Table{{Schema: "public", Name: "outbox"}}, Schema: schema,
		StatusInterval: time.Second, CheckInterval: time.Second,
	}
}

func (p *place) open(t *testing.T, more ...func(*slot.Options)) *stream {
	t.Helper()
	opt := p.options(t)
	for _, m := range more {
		m(&opt)
	}
	st := &stream{t: t, states: make(chan event.State, 1000), halt: make(chan event.Condition, 100), open: true}
	s, err := slot.Open(opt, slot.Observer{State: func(s event.State, c event.Condition) {
		t.Logf("state %s %s", s, c.What)
		select {
		case st.states <- s:
		default:
		}
		if s == event.StateHalted {
			select {
			case st.halt <- c:
			default:
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	st.s = s
	t.Cleanup(st.close)
	return st
}

func (s *stream) close() {
	if !s.open {
		return
	}
	s.open = false
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.s.Close(ctx); err != nil {
		s.t.Errorf("closing the stream: %v", err)
	}
}

func (s *stream) await(want event.State) {
	s.t.Helper()
	for timeout := time.After(patience); ; {
		select {
		case got := <-s.states:
			if got == want {
				return
			}
		case <-timeout:
			s.t.Fatalf("state %s was not reached in %s", want, patience)
		}
	}
}

// read is what came: keys in order, and the end of each transaction that ended.
type read struct {
	keys []string
	ends []event.Position
}

// until reads up to the transaction that brings the key, and confirms nothing.
func (s *stream) until(key string) (r read) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	inTx := 0 // events of the transaction at hand
	for found := false; !found; {
		b, err := s.s.Next(ctx)
		if err != nil {
			s.t.Fatalf("after %d events: %v", len(r.keys), err)
		}
		events := b.Events
		for _, span := range b.Spans {
			for _, ev := range events[:span.Events] {
				r.keys = append(r.keys, string(ev.Fields[event.Key]))
			}
			events = events[span.Events:]
			inTx += span.Events
			if span.Done && inTx > 0 {
				r.ends = append(r.ends, span.End)
				inTx = 0
			}
			found = found || span.Done && len(r.keys) > 0 && r.keys[len(r.keys)-1] == key
		}
		b.Memory.Release()
	}
	return r
}

// pass reads and confirms everything until the context ends, as an idle relay does.
func (s *stream) pass(ctx context.Context) {
	for {
		b, err := s.s.Next(ctx)
		if err != nil {
			return
		}
		for _, span := range b.Spans {
			if span.Done {
				s.s.Confirm(span.End)
			}
		}
		b.Memory.Release()
	}
}

// confirm confirms a position and waits until the server has it.
func (s *stream) confirm(p *place, at event.Position) {
	s.t.Helper()
	s.s.Confirm(at)
	p.awaitConfirmed(s.t, pglogrepl.LSN(at.LSN))
}

func wantKeys(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("rows %q came, want %q", got, want)
	}
}
