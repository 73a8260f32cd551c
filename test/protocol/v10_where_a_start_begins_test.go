package protocol

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/pgserver"
)

// V10. A lower position does not take the slot back. A start below what is
// confirmed begins at what is confirmed; a start in the future is accepted and
// brings nothing, without a word; a second client is refused with 55006.

func TestLowerPositionDoesNotTakeTheSlotBack(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		first := p.confirmed(t)
		p.insert(t, "a", "b")
		w := p.begin(t, 0)
		w.transaction()
		b := w.transaction()
		w.status(b.commit.TransactionEndLSN)
		p.awaitConfirmed(t, b.commit.TransactionEndLSN)
		w.status(first)
		w.status(0)
		p.insert(t, "c")
		c := w.transaction()
		if got := p.confirmed(t); got != b.commit.TransactionEndLSN {
			t.Errorf("the slot went from %s to %s", b.commit.TransactionEndLSN, got)
		}
		w.leave()

		// Below what is confirmed: from there.
		w = p.begin(t, first)
		wantKeys(t, w.until("c"), "c")
		w.leave()

		// In the future: nothing, until the log has got there.
		w = p.begin(t, c.commit.TransactionEndLSN+1<<20)
		p.insert(t, "d")
		for deadline := time.Now().Add(time.Second); ; {
			f, err := w.next(time.Until(deadline))
			if err == errQuiet {
				break
			}
			if err != nil || !f.keepalive {
				t.Fatalf("%v %v came, want silence", f, err)
			}
		}
	})
}

func TestSecondClientIsTold(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.begin(t, 0)
		pid := p.walsender(t)
		_, err := p.tryBegin(t, 0)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55006" || !strings.Contains(pg.Message, "is active for PID") {
			t.Errorf("the second client gets %v, want 55006 that names process %d", err, pid)
		}
	})
}

func TestSecondStreamStandsByAndTakesOver(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		first := p.open(t)
		first.await(event.StateStreaming)
		second := p.open(t)
		second.await(event.StateStandby)
		first.close()
		p.insert(t, "a")
		wantKeys(t, second.until("a").keys, "a")
	})
}
