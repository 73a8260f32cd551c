package protocol

import (
	"context"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// V9. wal_sender_timeout counts from the client's last word, not from its last
// read: a client that reads nothing but speaks lives, one that reads everything
// and says nothing is dropped. (Measured with 3 s over 12 s; here 2 s over 6 s.)

const (
	senderTimeout = 2 * time.Second
	stall         = 3 * senderTimeout
)

// stalled is a place with more to send than sockets hold, and a session with a short timeout.
func stalled(t *testing.T, srv *pgserver.Server) *place {
	t.Helper()
	p := newPlace(t, srv)
	p.settings = []string{"wal_sender_timeout", "2s"}
	p.exec(t, `insert into outbox select i::text, repeat('x', 1000) from generate_series(1, 30000) i`)
	return p
}

// lives watches the walsender for a time; it returns how long it was there.
func (p *place) lives(t *testing.T, atMost time.Duration, meanwhile func()) time.Duration {
	t.Helper()
	pid := p.walsender(t)
	began := time.Now()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < atMost {
		if p.walsender(t) != pid {
			return time.Since(began)
		}
		meanwhile()
		<-tick.C
	}
	return atMost
}

func TestClientThatNeitherReadsNorSpeaksIsDropped(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := stalled(t, srv)
		p.begin(t, 0)
		if lived := p.lives(t, patience, func() {}); lived < senderTimeout/2 || lived == patience {
			t.Errorf("dropped after %s, want it after %s", lived, senderTimeout)
		}
	})
}

func TestClientThatSpeaksWithoutReadingLives(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := stalled(t, srv)
		w := p.begin(t, 0)
		last := time.Now()
		lived := p.lives(t, stall, func() {
			if time.Since(last) > senderTimeout/4 {
				w.status(1)
				last = time.Now()
			}
		})
		if lived < stall {
			t.Errorf("dropped after %s although it spoke", lived)
		}
	})
}

func TestClientThatReadsWithoutSpeakingIsDropped(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := stalled(t, srv)
		w := p.begin(t, 0)
		began := time.Now()
		for {
			if _, err := w.next(patience); err == errQuiet {
				t.Fatalf("the stream was not ended in %s", patience)
			} else if err != nil {
				break
			}
		}
		if lived := time.Since(began); lived < senderTimeout/2 {
			t.Errorf("dropped after %s, want it after %s", lived, senderTimeout)
		}
	})
}

func TestStreamOutlivesATimeoutWhileNobodyTakesItsEvents(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := stalled(t, srv)
		p.exec(t, `alter database `+p.db+` set wal_sender_timeout = '2s'`)
		s := p.open(t, func(o *slot.Options) {
			o.InFlightBytes = 1 << 20
			o.StatusInterval = 0
		})
		s.await(event.StateStreaming)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		b, err := s.s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Memory.Release()
		if lived := p.lives(t, stall, func() {}); lived < stall {
			t.Errorf("the walsender was dropped after %s", lived)
		}
	})
}
