package protocol

import (
	"testing"

	"github.com/walrelay/walrelay/test/pgserver"
)

// V3. A row keeps the place where it was written, and comes when its transaction
// commits: after a restart rows come whose place is below the start. Whoever
// drops them loses them.

func TestRowsComeWhosePlaceIsBelowTheStart(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		w := p.begin(t, 0)
		name, b := p.neighbours(t, w)
		w.status(b.TransactionEndLSN)
		p.awaitConfirmed(t, b.TransactionEndLSN)
		w.leave()
		x := p.begin(t, b.TransactionEndLSN).transaction()
		wantKeys(t, x.keys, "a"+name)
		if x.at[0] >= b.TransactionEndLSN {
			t.Errorf("the row lies at %s, want it below the start %s", x.at[0], b.TransactionEndLSN)
		}
		if x.commit.CommitLSN < b.TransactionEndLSN {
			t.Errorf("its commit lies at %s, below the start %s", x.commit.CommitLSN, b.TransactionEndLSN)
		}
	})
}

func TestStreamDeliversRowsBelowItsStart(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		open := srv.Conn(t, p.db)
		exec := func(sql string) {
			if _, err := open.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		exec("begin")
		exec("insert into outbox values ('early', 'x')")
		s := p.open(t)
		p.insert(t, "confirmed")
		r := s.until("confirmed")
		s.confirm(p, r.ends[0])
		s.close()
		exec("insert into outbox values ('late', 'x')")
		exec("commit")
		wantKeys(t, p.open(t).until("late").keys, "early", "late")
	})
}
