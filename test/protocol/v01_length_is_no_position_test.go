package protocol

import (
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/test/pgserver"
)

// V1. A change's own place plus the length of its message is no place in the
// log: values are stored compressed and sent at full length. The server takes
// such a position for confirmed although its log is not that long, and then
// leaves out what it writes below it.

func TestStartPlusLengthLiesBeyondTheLogAndLosesTheNextRows(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		w := p.begin(t, 0)
		p.exec(t, `insert into outbox values ('big', repeat('x', 1000000))`)
		f := w.message('I')
		w.message('C')
		beyond := f.at + pglogrepl.LSN(len(f.data))
		if head := p.head(t); beyond <= head {
			t.Fatalf("%s + %d bytes is %s, not beyond the end of the log, %s", f.at, len(f.data), beyond, head)
		}
		w.status(beyond)
		p.awaitConfirmed(t, beyond)

		p.insert(t, "a", "b", "c", "d", "e")
		wantKeys(t, w.until("e"), "a", "b", "c", "d", "e")
		w.leave()
		if head := p.head(t); head >= beyond {
			t.Fatalf("the log has grown to %s, beyond %s: this proves nothing", head, beyond)
		}
		w = p.begin(t, 0)
		// What comes first is the first row behind the false position.
		p.exec(t, `select pg_logical_emit_message(false, 'filler', repeat('y', 1100000))`)
		p.insert(t, "after")
		wantKeys(t, w.until("after"), "after")
	})
}

func TestStreamConfirmsNothingBeyondTheCommitOfACompressedRow(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		s := p.open(t)
		p.exec(t, `insert into outbox values ('big', repeat('x', 1000000))`)
		r := s.until("big")
		s.confirm(p, r.ends[0])
		if head := p.head(t); p.confirmed(t) > head {
			t.Fatalf("%s is confirmed, the log ends at %s", p.confirmed(t), head)
		}
		keys := strings.Fields("a b c d e")
		p.insert(t, keys...)
		wantKeys(t, s.until("e").keys, keys...)
		s.close()
		wantKeys(t, p.open(t).until("e").keys, keys...)
	})
}
