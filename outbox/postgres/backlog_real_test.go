package postgres

import (
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestBacklogIsWhatWasThereAndNothingLater(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 10, 5)
		h.exec(`update public.outbox set status = 'processing' where hlc = 1; update public.outbox set available_at = now() + interval '1 hour' where hlc = 2;
 update public.outbox set status = 'published' where hlc = 3; update public.outbox set status = 'failed' where hlc = 4`)
		b, err := h.Backlog(h.ctx(), []string{"route1"})
		if err != nil {
			t.Fatal(err)
		}
		left := func(want int, held ...string) {
			t.Helper()
			if got, err := b.Left(h.ctx(), held); err != nil || got != want {
				t.Fatalf("%d rows are left, want %d: %v", got, want, err)
			}
		}
		left(8)
		h.insert(11, 20, 5)
		left(8)
		h.mark(outbox.Mark{ID: id(1)}, outbox.Mark{ID: id(2)})
		left(6)
		left(5, "k0") // row 5 waits behind a parked event; row 10 is on another route
		h.mark(outbox.Mark{ID: id(6)}, outbox.Mark{ID: id(7)}, outbox.Mark{ID: id(8)}, outbox.Mark{ID: id(9)}, outbox.Mark{ID: id(10)})
		left(0, "k0")
	})
}
