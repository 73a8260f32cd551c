package protocol

import (
	"fmt"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/test/pgserver"
)

// V2. One transaction's commit record can begin at the very byte where the
// commit before it ends. That end, exactly, is the position to confirm: one more
// loses the next transaction, the start of the commit repeats its own.

// neighbours commits a transaction b while a is open, and then a, until no byte
// lies between the two commits. It returns b's commit, as seen through w.
func (p *place) neighbours(t *testing.T, w *wire) (name string, b pglogrepl.CommitMessage) {
	t.Helper()
	for try := range 20 {
		name = fmt.Sprint(try)
		open := p.srv.Conn(t, p.db)
		for _, sql := range []string{"begin", "insert into outbox values ('a" + name + "', 'x')"} {
			if _, err := open.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		p.insert(t, "b"+name)
		if _, err := open.Exec(t.Context(), "commit"); err != nil {
			t.Fatal(err)
		}
		first, second := w.transaction(), w.transaction()
		if first.commit.TransactionEndLSN == second.commit.CommitLSN {
			wantKeys(t, append(first.keys, second.keys...), "b"+name, "a"+name)
			return name, first.commit
		}
	}
	t.Fatal("20 times the server wrote something between two commits")
	return "", b
}

func TestOneByteMoreThanTheCommitEndLosesTheNextTransaction(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		cases := []struct {
			name   string
			from   func(pglogrepl.CommitMessage) pglogrepl.LSN
			a, b   bool // come again
			suffix string
		}{
			{"end", func(c pglogrepl.CommitMessage) pglogrepl.LSN { return c.TransactionEndLSN }, true, false, "e0"},
			{"end + 1", func(c pglogrepl.CommitMessage) pglogrepl.LSN { return c.TransactionEndLSN + 1 }, false, false, "e1"},
			{"end + 26", func(c pglogrepl.CommitMessage) pglogrepl.LSN { return c.TransactionEndLSN + 26 }, false, false, "e26"},
			{"end + 27", func(c pglogrepl.CommitMessage) pglogrepl.LSN { return c.TransactionEndLSN + 27 }, false, false, "e27"},
			{"start", func(c pglogrepl.CommitMessage) pglogrepl.LSN { return c.CommitLSN }, true, true, "s0"},
			{"start + 1", func(c pglogrepl.CommitMessage) pglogrepl.LSN { return c.CommitLSN + 1 }, true, false, "s1"},
		}
		for _, c := range cases {
			p.newSlot(t, c.suffix)
		}
		name, commit := p.neighbours(t, p.begin(t, 0))
		p.insert(t, "last")
		for _, c := range cases {
			q := p.with(p.db + "_" + c.suffix)
			w := q.begin(t, 0)
			w.until("last")
			w.status(c.from(commit))
			q.awaitConfirmed(t, c.from(commit))
			w.leave()
			var want []string
			if c.b {
				want = append(want, "b"+name)
			}
			if c.a {
				want = append(want, "a"+name)
			}
			t.Log(c.name)
			wantKeys(t, q.begin(t, 0).until("last"), append(want, "last")...)
		}
	})
}

func TestStreamLosesNoneOfTwoNeighbouringTransactions(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.newSlot(t, "bare")
		s := p.open(t)
		name, commit := p.neighbours(t, p.with(p.db+"_bare").begin(t, 0))
		r := s.until("a" + name)
		b := r.ends[len(r.ends)-2]
		if pglogrepl.LSN(b.LSN) != commit.TransactionEndLSN {
			t.Fatalf("b ends at %s for the stream, at %s for the server", b, commit.TransactionEndLSN)
		}
		s.confirm(p, b)
		s.close()
		wantKeys(t, p.open(t).until("a"+name).keys, "a"+name)
	})
}
