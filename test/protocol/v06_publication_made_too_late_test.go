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

// V6. The publication is looked up as of the change at hand, not as of now. A
// missing one is no error at START_REPLICATION, and making it later does not heal
// the log before it. Postgres 15 to 17 end the stream with 42704 at the first
// change, each time again; Postgres 18 passes the change over, with a warning in
// its log and none in the stream, and goes on: the rows are lost in silence.

func TestMissingPublicationIsNoticedAtTheFirstChangeOrNotAtAll(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.exec(t, `drop publication p`)
		s := p.newSlot(t, "late")
		p = p.with(s)
		w := p.begin(t, 0)
		if f, err := w.next(500 * time.Millisecond); err != errQuiet && (err != nil || !f.keepalive) {
			t.Fatalf("%v %v came before any change", f, err)
		}
		p.insert(t, "early")
		silent := srv.Version() >= pgserver.V18
		if !silent {
			wantUndefined(t, w)
		}
		w.leave()

		p.exec(t, `create publication p for table outbox`)
		w = p.begin(t, 0)
		p.insert(t, "late")
		if silent {
			wantKeys(t, w.until("late"), "late") // without the early one
			return
		}
		wantUndefined(t, w)
	})
}

func wantUndefined(t *testing.T, w *wire) {
	t.Helper()
	for {
		f, err := w.next(patience)
		var pg *pgconn.PgError
		switch {
		case errors.As(err, &pg) && pg.Code == "42704":
			return
		case err != nil:
			t.Fatalf("the stream ended with %v, want 42704 (undefined_object)", err)
		case !f.keepalive && (f.kind() == 'I' || f.kind() == 'C'):
			t.Fatalf("message %q came, want the stream to end", f.kind())
		}
	}
}

func TestStreamRefusesToBeginWithoutItsPublication(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.exec(t, `drop publication p`)
		p.insert(t, "early")
		s := p.open(t)
		s.await(event.StateHalted)
		c := <-s.halt
		if !strings.Contains(c.What, "publication p") || c.Remedy == "" {
			t.Errorf("condition %+v, want the publication's name and a remedy", c)
		}
	})
}

func TestStreamHaltsWhenItsPublicationWasMadeAnewWhileItRuns(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		s := p.open(t)
		s.await(event.StateStreaming)
		p.exec(t, `drop publication p`)
		p.insert(t, "unseen")
		p.exec(t, `create publication p for table outbox`)
		p.insert(t, "seen")
		s.await(event.StateHalted)
	})
}
