package protocol

import (
	"bytes"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// V4. Logical messages: a transactional one comes with its transaction or not at
// all; any other comes although its transaction is rolled back, but on an idle
// server only when something else has the log written out. Content is any bytes.

const messages = "messages 'true'"

func TestMessageInATransactionComesWithItsCommitOnly(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		w := p.begin(t, 0, plugin("p", proto1, messages)...)
		p.exec(t, `begin; select pg_logical_emit_message(true, 'a', 'gone'); rollback`)
		returned := p.lsn(t, `select pg_logical_emit_message(true, '', ''::bytea)::text`)
		w.message('B')
		var m pglogrepl.LogicalDecodingMessage
		f := w.message()
		decode(t, f, &m)
		if !m.Transactional || m.Prefix != "" || len(m.Content) != 0 {
			t.Errorf("message %+v, want a transactional one, empty in both parts", m)
		}
		// What the function returns is the end of its record, and so is the message's place.
		if m.LSN != returned {
			t.Errorf("the message says %s, the function returned %s", m.LSN, returned)
		}
		w.message('C')
		p.exec(t, `select pg_logical_emit_message(true, 'bin', '\x0001ff00'::bytea)`)
		w.message('B')
		decode(t, w.message(), &m)
		if want := []byte{0, 1, 0xff, 0}; !bytes.Equal(m.Content, want) {
			t.Errorf("content %x, want %x", m.Content, want)
		}
	})
}

func TestMessageOutsideOfATransactionSurvivesARollback(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		w := p.begin(t, 0, plugin("p", proto1, messages)...)
		p.exec(t, `begin; insert into outbox values ('gone', 'x'); select pg_logical_emit_message(false, 'a', 'stays'); rollback`)
		p.insert(t, "next") // has the log written out
		var m pglogrepl.LogicalDecodingMessage
		f := w.message()
		decode(t, f, &m)
		if f.kind() != 'M' || m.Transactional || string(m.Content) != "stays" {
			t.Errorf("message %q %+v, want the one that is not transactional", f.kind(), m)
		}
		wantKeys(t, w.transaction().keys, "next")
	})
}

func TestMessageOutsideOfATransactionWaitsForTheLogToBeWritten(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		w := p.begin(t, 0, plugin("p", proto1, messages)...)
		open := srv.Conn(t, p.db)
		for _, sql := range []string{"begin", "insert into outbox values ('open', 'x')", "select pg_logical_emit_message(false, 'a', 'early')"} {
			if _, err := open.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		for deadline := time.Now().Add(time.Second); ; {
			f, err := w.next(time.Until(deadline))
			if err == errQuiet {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !f.keepalive {
				t.Fatalf("message %q came within a second on an idle server", f.kind())
			}
		}
		p.insert(t, "other") // its commit writes the log out
		if f := w.message(); f.kind() != 'M' {
			t.Errorf("%q came first, want the message", f.kind())
		}
	})
}

func TestStreamLeavesMessagesOutsideOfATransactionOut(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		s := p.open(t, func(o *slot.Options) { o.Messages = []string{"outbox"} })
		p.exec(t, `select pg_logical_emit_message(false, 'outbox/orders/loose', '1')`)
		p.exec(t, `begin; select pg_logical_emit_message(true, 'outbox/orders/gone', '1'); rollback`)
		p.exec(t, `select pg_logical_emit_message(true, 'outbox/orders/kept', '1')`)
		wantKeys(t, s.until("kept").keys, "kept")
	})
}

func TestStreamGivesALooseMessageAnEndOfItsOwn(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		s := p.open(t, func(o *slot.Options) { o.Messages, o.AllowNonTransactional = []string{"outbox"}, true })
		at := p.lsn(t, `select pg_logical_emit_message(false, 'outbox/orders/loose', '1')::text`)
		p.insert(t, "row")
		r := s.until("row")
		wantKeys(t, r.keys, "loose", "row")
		if len(r.ends) != 2 || r.ends[0].LSN != event.LSN(at) {
			t.Errorf("ends %v, want the message's own end %s first", r.ends, at)
		}
	})
}
