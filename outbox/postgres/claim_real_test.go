package postgres

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestClaimTakesRowsInTableOrderAndWritesOnlyTheClaim(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 10, 10)
		h.exec(`update public.outbox set available_at = now() - interval '1 minute', attempts = 2, last_error = 'x' where hlc = 4;
 update public.outbox set available_at = now() + interval '1 hour' where hlc = 2;
 update public.outbox set hlc = null where hlc = 1;
 update public.outbox set status = 'failed' where hlc = 3`)
		c := h.claim(outbox.Request{Limit: 4})
		same(t, "first claim", rowIDs(c), []string{id(4), id(5), id(6), id(7)})
		if c.Rows[0].Attempts != 2 || c.Rows[0].Route != "route1" || c.Rows[0].Key != "k4" || string(c.Rows[0].Event.Fields[event.Payload]) != `{"a": 1}` ||
			c.Rows[1].Event.CommitMicros != time.Date(2026, 1, 1, 0, 0, 0, 5000, time.UTC).UnixMicro() || c.Rows[0].Event.Relation != "public.outbox" {
			t.Fatalf("row %+v", c.Rows[0])
		}
		if got := h.ask(`select processing_at at time zone 'UTC' || '+00' from public.outbox where id = $1::uuid`, id(7)); got != string(c.Fence) {
			t.Fatalf("fence %s, column %s", c.Fence, got)
		}
		h.wantRow(4, "processing attempts=2 processing_at due error=x")
		h.wantRow(5, "processing attempts=0 processing_at")
		h.wantRow(2, "pending attempts=0 later")
		same(t, "second claim", rowIDs(h.claim(outbox.Request{Limit: 10})), []string{id(8), id(9), id(10), id(1)})
		if c := h.claim(outbox.Request{Limit: 10}); len(c.Rows) != 0 {
			t.Fatalf("claimed %v", rowIDs(c))
		}
	})
}

func TestSettleWritesEachTransition(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 6, 10)
		h.exec(`update public.outbox set last_error = 'old', attempts = 1, available_at = '2026-01-01'`)
		c := h.claim(outbox.Request{Limit: 10})
		f := c.Fence
		lost := h.settle(
			outbox.Outcome{ID: id(4), Fence: f, Verdict: outbox.Released},
			outbox.Outcome{ID: id(1), Fence: f, Verdict: outbox.Published},
			outbox.Outcome{ID: id(2), Fence: f, Verdict: outbox.Retry, Attempts: 2, Delay: time.Hour, Error: `it's "no" \ good`},
			outbox.Outcome{ID: id(3), Fence: f, Verdict: outbox.Failed, Error: "gone"},
			outbox.Outcome{ID: id(5), Fence: "2026-01-01 00:00:00+00", Verdict: outbox.Published},
			outbox.Outcome{ID: id(99), Fence: f, Verdict: outbox.Published},
		)
		if len(lost) != 2 || lost[0] != 4 || lost[1] != 5 {
			t.Fatalf("lost %v", lost)
		}
		h.wantRow(1, "published attempts=1 published_at processing_at due")
		h.wantRow(2, `pending attempts=2 later error=it's "no" \ good`)
		h.wantRow(3, "failed attempts=1 processing_at due error=gone")
		h.wantRow(4, "pending attempts=1 due error=old")
		h.wantRow(5, "processing attempts=1 processing_at due error=old")
		if d := h.ask(`select (extract(epoch from available_at - now()) between 3590 and 3600)::text from public.outbox where id = $1::uuid`, id(2)); d != "true" {
			t.Fatal("the retry is not due in an hour")
		}
		// Said again, because the first answer got lost: what was written is not lost.
		if lost := h.settle(outbox.Outcome{ID: id(1), Fence: f, Verdict: outbox.Published}, outbox.Outcome{ID: id(3), Fence: f, Verdict: outbox.Failed, Error: "gone"}); len(lost) != 0 {
			t.Fatalf("lost %v on repetition", lost)
		}
		if lost := h.settle(outbox.Outcome{ID: id(3), Fence: f, Verdict: outbox.Published}); len(lost) != 1 {
			t.Fatalf("a failed row was published by its old claim")
		}
	})
}
