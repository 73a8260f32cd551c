package protocol

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/test/pgserver"
)

// V7. While only other tables are busy, the server sends keepalives that ask for
// no reply, and keeps the log from the last confirmed position on: the client has
// to volunteer the keepalive's position. Transactions without rows for us are not sent.

func busyElsewhere(t *testing.T, p *place) {
	t.Helper()
	for range 4 {
		p.exec(t, `insert into other select repeat('x', 1000) from generate_series(1, 2000)`)
	}
}

func TestBusyForeignTableHoldsTheSlotUntilTheClientVolunteers(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.exec(t, `create table other (x text)`)
		w := p.begin(t, 0)
		before := p.confirmed(t)
		busyElsewhere(t, p)
		head := p.head(t)
		var last pglogrepl.LSN
		keepalives := 0
		for last < head {
			f, err := w.next(patience)
			if err != nil {
				t.Fatalf("keepalives up to %s of %s: %v", last, head, err)
			}
			if !f.keepalive {
				t.Fatalf("message %q came, want empty transactions not to be sent", f.kind())
			}
			if f.reply {
				t.Error("a keepalive asks for a reply")
			}
			keepalives++
			last = f.at
			if p.walsenderSent(t) >= head && last < head {
				// It has passed everything and says so when it is asked, or in its own time.
				if err := pglogrepl.SendStandbyStatusUpdate(context.Background(), w.conn, pglogrepl.StandbyStatusUpdate{
					WALWritePosition: before, WALFlushPosition: before, WALApplyPosition: before, ReplyRequested: true,
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Logf("%d keepalives", keepalives)
		if got := p.confirmed(t); got != before {
			t.Errorf("the slot moved from %s to %s by itself", before, got)
		}
		w.status(last)
		p.awaitConfirmed(t, last)
	})
}

func (p *place) walsenderSent(t *testing.T) pglogrepl.LSN {
	t.Helper()
	return p.lsn(t, `select coalesce(max(r.sent_lsn), '0/0')::text from pg_stat_replication r join pg_replication_slots s on s.active_pid = r.pid where s.slot_name = $1`, p.slot)
}

func TestStreamLetsGoOfForeignLogByItself(t *testing.T) {
	everyVersionAlone(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.exec(t, `create table other (x text)`)
		s := p.open(t)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		go s.pass(ctx)
		busyElsewhere(t, p)
		head := p.head(t)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for p.confirmed(t)+1<<20 < head { // the stride of an idle stream, 1 MiB
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatalf("%s is confirmed, the log ends at %s", p.confirmed(t), head)
			}
		}
	})
}
