package protocol

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/test/pgserver"
)

// V8. A fast shutdown waits until every walsender's client has confirmed the end
// of the log. A silent client blocks it, one that answers with an old position
// blocks it and is asked again and again as fast as it answers; the keepalive's
// own position ends it at once. (Measured for 8 s; 3 s show the same.)

const hang = 3 * time.Second

// shutdown stops the server beside a client that treats each frame with answer.
func shutdown(t *testing.T, srv *pgserver.Server, answer func(w *wire, f frame)) (took time.Duration, stopped bool, keepalives int64) {
	t.Helper()
	p := newPlace(t, srv)
	p.insert(t, "a")
	w := p.begin(t, 0)
	w.until("a")
	var seen atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			f, err := w.next(patience)
			if err != nil {
				return
			}
			if f.keepalive {
				seen.Add(1)
			}
			answer(w, f)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	took, err := srv.StopContext(ctx, pgserver.Fast)
	keepalives = seen.Load()
	if err == nil {
		<-ended
		return took, true, keepalives
	}
	// Without its client the walsender gives up, and the shutdown goes on.
	_ = w.conn.Conn().Close()
	<-ended
	again, cancelAgain := context.WithTimeout(context.Background(), patience)
	defer cancelAgain()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for srv.Running() {
		select {
		case <-tick.C:
		case <-again.Done():
			t.Fatal("the server did not stop after its client had gone")
		}
	}
	return took, false, keepalives
}

func TestSilentClientBlocksAFastShutdown(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		if took, stopped, _ := shutdown(t, srv, func(*wire, frame) {}); stopped {
			t.Errorf("the server stopped after %s, want it to wait", took)
		}
	})
}

func TestOldPositionBlocksAFastShutdownAndIsAskedForAgainAndAgain(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		took, stopped, keepalives := shutdown(t, srv, func(w *wire, f frame) {
			if f.keepalive {
				_ = w.trySay(1) // any old position
			}
		})
		if stopped {
			t.Errorf("the server stopped after %s, want it to wait", took)
		}
		t.Logf("%d keepalives in %s", keepalives, took)
		// Tens of thousands on an idle machine; in quiet times there is one in 30 s.
		if keepalives < 50 {
			t.Errorf("%d keepalives in %s, want one for each answer", keepalives, took)
		}
	})
}

func TestKeepalivesOwnPositionEndsAFastShutdown(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		took, stopped, _ := shutdown(t, srv, func(w *wire, f frame) {
			if f.keepalive {
				_ = w.trySay(max(f.at, pglogrepl.LSN(1)))
			}
		})
		if !stopped || took > 2*time.Second {
			t.Errorf("stopped: %v, after %s; want less than 2 s", stopped, took)
		}
	})
}

func TestStreamLetsTheServerStop(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.insert(t, "a")
		s := p.open(t)
		r := s.until("a")
		s.confirm(p, r.ends[0])
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.pass(ctx)
		if took := srv.Stop(t, pgserver.Fast); took > 2*time.Second {
			t.Errorf("the server took %s to stop, want less than 2 s", took)
		}
	})
}
