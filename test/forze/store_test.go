package forze

// Battery B: what the table does.

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

// claimAll takes what may be claimed.
func claimAll(t *testing.T, table outbox.Table, limit int) (ids []string, fence outbox.Fence) {
	t.Helper()
	c, err := table.Claim(context.Background(), outbox.Request{Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Rows {
		ids = append(ids, c.Rows[i].ID)
	}
	return ids, c.Fence
}

// B1, B2, A4: a row is there when its transaction commits; one that is rolled back or still
// open is nobody's.
func TestOnlyCommittedRowsAreClaimed(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ctx := context.Background()
		other := d.pg.Conn(t, d.name)
		write := func(g given) {
			sql, args := flushing([]given{g})
			if _, err := other.Exec(ctx, sql, args...); err != nil {
				t.Fatal(err)
			}
		}
		say := func(sql string) {
			if _, err := other.Exec(ctx, sql); err != nil {
				t.Fatal(err)
			}
		}
		p := d.poll(acknowledge, setting{})
		say("begin")
		write(given{key: "rolled back"})
		say("rollback")
		say("begin")
		write(given{key: "open"})
		id := d.flush(given{key: "committed"})[0]
		d.becomes("published", `select status from public.outbox where id = $1::uuid`, id)
		same(t, "deliveries while a transaction is open", p.deliveries(), []string{id})
		say("commit")
		d.becomes("published 2", states)
		p.mustStop(t)
		d.isPublished(id)
		if got := d.ask(`select string_agg(ordering_key, ' ' order by ordering_key) from public.outbox`); got != "committed open" {
			t.Errorf("keys %q, want those of the two committed rows", got)
		}
	})
}

// B4: a second flush of an event id adds no row, and the first payload is published, once.
func TestSecondFlushOfAnEventIsNoSecondEvent(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		const event = "0198f3a0-0000-7000-8000-000000000001"
		id := d.flush(given{event: event, payload: `{"first": true}`})[0]
		if again := d.flush(given{event: event, payload: `{"first": false}`}); len(again) != 0 {
			t.Fatalf("the second flush made %v", again)
		}
		p := d.poll(acknowledge, setting{})
		d.becomes("published 1", states)
		if again := d.flush(given{event: event, payload: `{"first": false}`}); len(again) != 0 {
			t.Fatalf("the third flush made %v", again)
		}
		p.mustStop(t)
		same(t, "deliveries", p.deliveries(), []string{id})
		d.isPublished(id)
	})
}

// B8: a claim of an hour ago is given back and published.
func TestStaleClaimIsReclaimedAndPublished(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(given{key: "stale"}, given{key: "stale"}, given{key: "fresh"}, given{key: "fresh"})
		d.exec(`update public.outbox set status = 'processing', processing_at = clock_timestamp() - interval '1 hour' where id = $1::uuid`, ids[0])
		d.exec(`update public.outbox set status = 'processing', processing_at = clock_timestamp() where id = $1::uuid`, ids[2])
		began := d.now()
		p := d.poll(acknowledge, setting{})
		d.becomes("pending 1, processing 1, published 2", states)
		p.mustStop(t)
		d.isPublished(ids[0], changes{"attempts": 1, "available_at": d.since(began), "processing_at": d.since(began)})
		d.isPublished(ids[1])
		// A foreign claim that is fresh is left alone, and holds its key.
		d.is(ids[2], changes{"status": "processing", "processing_at": d.ever()})
		d.is(ids[3], changes{})
		same(t, "deliveries", p.deliveries(), ids[:2])
	})
}

// B9, B12: a failed row that is requeued, by forze's statement or by ours, starts as if it were
// new, and is published once.
func TestRequeuedRowStartsAnewAndIsPublishedOnce(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(3, "")...)
		d.exec(`update public.outbox set status = 'failed', attempts = 3, last_error = 'gone', processing_at = clock_timestamp(),
			available_at = clock_timestamp() + interval '1 hour', published_at = clock_timestamp()`)
		if n := d.exec(forzeRequeue, ids[:1]); n != 1 {
			t.Fatalf("forze's requeue touched %d rows", n)
		}
		_, table := d.store()
		if n, err := table.Requeue(context.Background(), []string{ids[1], ids[0]}); n != 1 || err != nil {
			t.Fatalf("our requeue touched %d rows, %v; want 1: the other is pending already", n, err)
		}
		d.is(ids[0], changes{})
		d.is(ids[1], changes{})
		p := d.poll(acknowledge, setting{})
		d.becomes("failed 1, published 2", states)
		p.mustStop(t)
		same(t, "deliveries", p.deliveries(), ids[:2])
		d.isPublished(ids[0])
		d.isPublished(ids[1])
		d.is(ids[2], changes{
			"status": "failed", "attempts": 3, "last_error": "gone", "processing_at": d.ever(), "published_at": d.ever(),
			"available_at": span{d.now(), d.now().Add(time.Hour)},
		})
	})
}

// B13: a row that is due later is invisible to claims, counted by the depth, and published in time.
func TestRowThatIsDueLaterIsCountedAndNotClaimed(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		due := d.now().Add(2 * time.Second)
		ids := d.flush(given{key: "later", available: due}, given{key: "now"}, given{key: "much later", available: due.Add(time.Hour)})
		_, table := d.store()
		got, fence := claimAll(t, table, 10)
		same(t, "claimed", got, ids[1:2])
		if f, err := table.Figures(context.Background()); err != nil || f.Pending != 2 || f.Processing != 1 {
			t.Fatalf("figures %+v, %v; want 2 pending, 1 processing", f, err)
		}
		if got := d.depth(); got != "2,1,0" {
			t.Fatalf("forze's depth is %s, want 2,1,0", got)
		}
		release(t, table, got, fence)
		d.is(ids[1], changes{})
		p := d.poll(acknowledge, setting{})
		d.becomes("pending 1, published 2", states)
		p.mustStop(t)
		same(t, "deliveries", p.deliveries(), []string{ids[1], ids[0]})
		d.isPublished(ids[0], changes{"processing_at": d.since(due), "published_at": d.since(due)})
		d.isPublished(ids[1])
		d.is(ids[2], changes{})
	})
}

func release(t *testing.T, table outbox.Table, ids []string, fence outbox.Fence) {
	t.Helper()
	var all []outbox.Outcome
	for _, id := range ids {
		all = append(all, outbox.Outcome{ID: id, Fence: fence, Verdict: outbox.Released})
	}
	if lost, err := table.Settle(context.Background(), all); err != nil || len(lost) > 0 {
		t.Fatalf("%d claims lost, %v", len(lost), err)
	}
}

// B14: events of one flush, made in one instant, are claimed in the order of their stamps,
// whatever their ids; those without a stamp come last.
func TestEventsOfOneFlushAreClaimedByTheirStamps(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		at := d.now().Truncate(time.Millisecond)
		id := func(n int) string { return fmt.Sprintf("0198f3a0-0000-7000-8000-%012d", n) }
		stamp := func(ms, logical int64) int64 { return ms<<16 | logical }
		ms := at.UnixMilli()
		ids := d.flush(
			given{id: id(4), key: "k", created: at, hlc: stamp(ms, 0)},
			given{id: id(3), key: "k", created: at, hlc: stamp(ms, 1)},
			given{id: id(2), key: "k", created: at, hlc: stamp(ms+1, 0)},
			given{id: id(1), key: "k", created: at},
			given{id: id(0), key: "k", created: at.Add(-time.Hour), hlc: stamp(ms+1, 1)},
		)
		want := []string{ids[0], ids[1], ids[2], ids[4], ids[3]}
		_, table := d.store()
		got, fence := claimAll(t, table, 10)
		same(t, "claimed", got, want)
		release(t, table, got, fence)
		p := d.poll(acknowledge, setting{opt: outbox.Options{Batch: 2}})
		d.becomes("published 5", states)
		p.mustStop(t)
		same(t, "deliveries", p.deliveries(), want)
		for _, id := range ids {
			d.isPublished(id)
		}
	})
}

// B16, B17: figures and forze's own probe say the same, count no published row, and
// the oldest age follows the oldest pending row, one that waits among them.
func TestDepthAndOldestAgeFollowTheUnpublishedRows(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		now := d.now()
		ids := d.flush(
			given{key: "a", created: now.Add(-3 * time.Hour), available: now.Add(time.Hour)}, given{key: "b", created: now.Add(-time.Hour)},
			given{key: "c"}, given{key: "d"}, given{key: "e", created: now.Add(-9 * time.Hour)},
		)
		d.exec(`update public.outbox set status = 'processing', processing_at = clock_timestamp() where id = $1::uuid`, ids[2])
		d.exec(`update public.outbox set status = 'failed', last_error = 'gone' where id = $1::uuid`, ids[3])
		d.exec(`update public.outbox set status = 'published', published_at = clock_timestamp() where id = $1::uuid`, ids[4])
		_, table := d.store()
		figures := func() outbox.Figures {
			f, err := table.Figures(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		f := figures()
		if got, want := fmt.Sprintf("%d,%d,%d", f.Pending, f.Processing, f.Failed), d.depth(); got != want || got != "2,1,1" {
			t.Errorf("figures say %s, forze's depth %s, want 2,1,1", got, want)
		}
		if f.OldestPending < 3*time.Hour || f.OldestPending > 4*time.Hour {
			t.Errorf("the oldest is %s old, want 3 h: a row that waits counts", f.OldestPending)
		}
		d.exec(`update public.outbox set available_at = null, status = 'pending', processing_at = null where status <> 'published'`)
		p := d.poll(acknowledge, setting{})
		d.becomes("published 5", states)
		p.mustStop(t)
		if f = figures(); f.OldestPending != 0 || f.Pending+f.Processing+f.Failed != 0 {
			t.Errorf("all are published and figures say %+v", f)
		}
		d.isPublished(ids[0], changes{"available_at": nil})
		d.isPublished(ids[3], changes{"last_error": nil})
	})
}

// B19: a claim that others contend gets the rest, without an error, and what they
// have locked stays as it was.
func TestContendedClaimGetsTheRest(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(10, "")...)
		other := d.pg.Conn(t, d.name)
		if _, err := other.Exec(context.Background(), "begin"); err != nil {
			t.Fatal(err)
		}
		stolen, err := column(other, "select id::text from public.outbox where id = any($1::uuid[]) for update", ids[:5])
		if err != nil || len(stolen) != 5 {
			t.Fatal(stolen, err)
		}
		_, table := d.store()
		got, fence := claimAll(t, table, 10)
		same(t, "claimed", got, ids[5:])
		if _, err := other.Exec(context.Background(), "rollback"); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids[:5] {
			d.is(id, changes{})
		}
		for _, id := range ids[5:] {
			d.is(id, changes{"status": "processing", "processing_at": d.ever()})
		}
		release(t, table, got, fence)
		p := d.poll(acknowledge, setting{})
		d.becomes("published 10", states)
		p.mustStop(t)
		for _, id := range ids {
			d.isPublished(id)
		}
		if sent := p.deliveries(); !slices.Equal(sent, ids) {
			t.Errorf("delivered %v, want %v", sent, ids)
		}
	})
}

// Contract 1.10: in forze one row with a stamp below zero, or a payload that is no object, has every
// claim fail after its rows turned processing. Here each is dealt with alone.
func TestRowThatCannotBeDecodedSpoilsNoClaim(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(given{key: "a"}, given{key: "b", payload: `"text"`}, given{key: "c", hlc: -5}, given{key: "d"})
		p := d.poll(acknowledge, setting{})
		d.becomes("failed 1, published 3", states)
		p.mustStop(t)
		same(t, "deliveries", p.deliveries(), []string{ids[0], ids[1], ids[3]})
		d.isPublished(ids[0])
		d.isPublished(ids[1]) // JSON as good as any: only the application's model could refuse it
		d.isPublished(ids[3])
		d.is(ids[2], changes{
			"status": "failed", "processing_at": d.ever(),
			"last_error": `the event's hlc is unusable: "-5" is not a packed stamp (a positive 64-bit integer)`,
		})
	})
}
