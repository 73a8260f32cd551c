package forze

// Battery C: what becomes of rows that fail. A frozen clock of the original is
// a bracket of the server's clock here, before the broker's answer and after the row shows it.

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/router"
	"github.com/walrelay/walrelay/test/pgserver"
)

// failFirst fails a row's first attempts.
func failFirst(times int, what string) script {
	return func(_ context.Context, _ *event.Record, n int) error {
		if n <= times {
			return passing(what)
		}
		return nil
	}
}

// C1, C2, C3: the first retry is due after half to all of the shortest backoff, is not
// claimable before, and is claimed after.
func TestFirstRetryWaitsBetweenHalfAndAllOfTheBackoff(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		id := d.flush(given{key: "k"})[0]
		var before time.Time
		p := d.poll(func(_ context.Context, _ *event.Record, n int) error {
			if n == 1 {
				before = d.now()
				return passing("connection reset by peer")
			}
			return nil
		}, setting{opt: outbox.Options{BackoffMin: time.Second}})
		d.becomes("pending", `select status from public.outbox where id = $1::uuid and attempts = 1`, id)
		waiting := d.now()
		_, table := d.store()
		claim, err := table.Claim(context.Background(), outbox.Request{Limit: 10})
		if err != nil || len(claim.Rows) != 0 {
			t.Fatalf("right after the failure a claim brings %d rows, %v; want none", len(claim.Rows), err)
		}
		d.becomes("published", `select status from public.outbox where id = $1::uuid`, id)
		due, err := time.Parse(time.RFC3339Nano, d.read(id)["available_at"].(string))
		if err != nil {
			t.Fatal(err)
		}
		d.isPublished(id, changes{
			"attempts": 1, "available_at": span{before.Add(500 * time.Millisecond), waiting.Add(time.Second)},
			"processing_at": d.since(due), "published_at": d.since(due),
		})
		p.mustStop(t)
	})
}

// B10: two passing failures for each of three rows: six retries, all published, attempts 2.
func TestRowsThatFailTwiceArePublishedWithTwoAttempts(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(3, "")...)
		p := d.poll(failFirst(2, "broker is away"), setting{opt: outbox.Options{BackoffMax: 200 * time.Millisecond}})
		d.becomes("published 3", states)
		p.mustStop(t)
		for _, id := range ids {
			d.isPublished(id, changes{"attempts": 2, "available_at": d.ever()})
		}
		if p.retried != 6 || len(p.deliveries()) != 3 {
			t.Errorf("%d retries and %d deliveries, want 6 and 3", p.retried, len(p.deliveries()))
		}
	})
}

// B11, C4: a row that always fails ends failed, one attempt short of the most, with the
// error's text; where its route holds its key back it is parked.
func TestRowThatAlwaysFailsEndsFailed(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		for _, loose := range []bool{true, false} {
			t.Run(fmt.Sprintf("loose %v", loose), func(t *testing.T) {
				t.Parallel()
				d := newDatabase(t, v)
				ids := d.flush(given{key: "k"}, given{key: "k", payload: `{"n": 2}`}, given{key: "other"})
				always := func(_ context.Context, rec *event.Record, _ int) error {
					if string(rec.Origin.Row) == ids[0] {
						return passing("topic orders does not exist")
					}
					return nil
				}
				p := d.poll(always, setting{opt: outbox.Options{Attempts: 2}, routes: []router.Route{{Match: "*", Loose: loose}}})
				failed := changes{
					"status": "failed", "attempts": 1, "last_error": "topic orders does not exist",
					"available_at": d.ever().wide(), "processing_at": d.ever().wide(),
				}
				d.turns(ids[0], failed)
				d.becomes("published", `select status from public.outbox where id = $1::uuid`, ids[2])
				parked := "1 attempts"
				if loose {
					parked = "0 "
					d.becomes("published", `select status from public.outbox where id = $1::uuid`, ids[1])
				}
				p.mustStop(t)
				d.is(ids[0], failed)
				d.isPublished(ids[2])
				if loose {
					d.isPublished(ids[1])
				} else {
					d.is(ids[1], changes{}) // it waits, untouched
				}
				if got := d.ask(`select count(*) || ' ' || coalesce(string_agg(reason, ' '), '') from walrelay.parked`); got != parked {
					t.Errorf("parked: %q, want %q", got, parked)
				}
				if n := p.offers(ids[0]); n != 2 {
					t.Errorf("it was tried %d times, want 2", n)
				}
			})
		}
	})
}

// wide is a span that ends later: for what is not there yet.
func (s span) wide() span { return span{s.from, s.until.Add(10 * time.Minute)} }

// C5: a poisoned row in the middle fails at once, its attempts untouched, and its
// neighbours are published without one.
func TestPoisonInTheMiddleLeavesItsNeighboursAlone(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(5, "")...)
		p := d.poll(func(_ context.Context, rec *event.Record, _ int) error {
			if string(rec.Origin.Row) == ids[2] {
				return poison("record is too large")
			}
			return nil
		}, setting{})
		d.becomes("failed 1, published 4", states)
		p.mustStop(t)
		for i, id := range ids {
			if i == 2 {
				d.is(id, changes{"status": "failed", "last_error": "record is too large", "processing_at": d.ever()})
				continue
			}
			d.isPublished(id)
		}
		if n := p.offers(ids[2]); n != 1 {
			t.Errorf("the poisoned row was tried %d times, want 1", n)
		}
	})
}

// C6: a fault of the deployment, ciphertext on a route that declares none, stops the source: no
// row is failed, and none stays in processing.
func TestFaultOfTheDeploymentFailsNoRow(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(given{key: "a"}, given{key: "b", payload: `{"__fz_enc__": "c2VjcmV0"}`}, given{key: "c"})
		p := d.poll(acknowledge, setting{routes: []router.Route{{Match: "*", Encryption: router.EncryptionNone}}})
		if err := p.ended(); event.ClassOf(err) != event.Halt || !strings.Contains(err.Error(), "encrypt") {
			t.Fatalf("the relay ended with %v, want that it halts because of the ciphertext", err)
		}
		for i, id := range ids {
			if i == 0 {
				d.isPublished(id)
				continue
			}
			d.is(id, changes{})
		}
	})
}

// C7, C9, C10, C11: of 45 rows 40 are published, 3 wait with their own error and due
// time, 2 are failed; nobody's failure stops the batch, and no text is altered.
func TestOutcomesOfABatchDoNotMix(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(45, "")...)
		number := map[string]int{}
		for i, id := range ids {
			number[id] = i
		}
		retry := map[int]string{9: "leader is moving", 20: "leader is moving", 21: "request timed out"}
		p := d.poll(func(_ context.Context, rec *event.Record, _ int) error {
			i := number[string(rec.Origin.Row)]
			switch {
			case retry[i] != "":
				return passing(retry[i])
			case i == 3 || i == 30:
				return poison("not for Kafka")
			}
			return nil
		}, setting{opt: outbox.Options{BackoffMin: time.Hour, BackoffMax: time.Hour}})
		d.becomes("failed 2, pending 3, published 40", states)
		p.mustStop(t)
		for i, id := range ids {
			switch {
			case retry[i] != "":
				later := span{d.now().Add(25 * time.Minute), d.now().Add(time.Hour)}
				d.is(id, changes{"attempts": 1, "last_error": retry[i], "available_at": later})
			case i == 3 || i == 30:
				d.is(id, changes{"status": "failed", "last_error": "not for Kafka", "processing_at": d.ever()})
			default:
				d.isPublished(id)
			}
		}
	})
}

// C8: marks are batched: the acknowledgements that came while one statement was on
// its way are written by the next, in the order of the claim.
func TestMarksAreBatchedInClaimOrder(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(100, "")...)
		all, once := make(chan struct{}), sync.Once{}
		p := d.poll(func(_ context.Context, rec *event.Record, _ int) error {
			if string(rec.Origin.Row) == ids[99] {
				once.Do(func() { close(all) })
			}
			return nil
		}, setting{before: func(op string, n int) error {
			if op == "settle" && n == 1 {
				<-all
			}
			return nil
		}})
		d.becomes("published 100", states)
		p.mustStop(t)
		var order []string
		for _, batch := range p.table.outcomes {
			for _, o := range batch {
				order = append(order, o.ID)
			}
		}
		same(t, "outcomes", order, ids)
		if n := len(p.table.outcomes); n > 4 {
			t.Errorf("100 marks took %d statements, want a few", n)
		}
		for _, id := range ids {
			d.isPublished(id)
		}
	})
}

// C12: a mark that fails for a while is written again, with the same values, and nothing
// is published twice for it.
func TestFailingMarkIsRepeatedAndPublishesNothingTwice(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(10, "")...)
		p := d.poll(acknowledge, setting{before: func(op string, n int) error {
			if op == "settle" && n <= 3 {
				return passing("connection reset by peer")
			}
			return nil
		}})
		d.becomes("published 10", states)
		p.mustStop(t)
		same(t, "deliveries", p.deliveries(), ids)
		for _, id := range ids {
			d.isPublished(id)
		}
	})
}

// C13: a mark that fails for good stops the source and leaves its rows in processing, for
// the reclaim: whoever comes next publishes them again.
func TestMarkThatCannotBeWrittenLeavesRowsForTheReclaim(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(10, "")...)
		d.exec(`create function no_mark() returns trigger language plpgsql as $$ begin raise exception 'the application forbids it'; end $$`)
		d.exec(`create trigger no_mark before update on public.outbox for each row when (new.status = 'published') execute function no_mark()`)
		p := d.poll(acknowledge, setting{})
		if err := p.ended(); event.ClassOf(err) != event.Halt || !strings.Contains(err.Error(), "the application forbids it") {
			t.Fatalf("the relay ended with %v, want the trigger's error", err)
		}
		for _, id := range ids {
			d.is(id, changes{"status": "processing", "processing_at": d.ever()})
		}
		d.exec(`drop trigger no_mark on public.outbox`)
		// What is older than reclaim_after is abandoned.
		d.exec(`update public.outbox set processing_at = processing_at - interval '1 hour'`)
		again := d.poll(acknowledge, setting{})
		d.becomes("published 10", states)
		again.mustStop(t)
		same(t, "deliveries after the reclaim", again.deliveries(), ids)
		for _, id := range ids {
			d.isPublished(id, changes{"attempts": 1, "available_at": d.ever()})
		}
	})
}

// C14: the wait before the next attempt doubles up to its cap and lies between half and
// all of that, however often a row was tried.
func TestBackoffStaysInItsBand(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		tried := []int{0, 1, 2, 3, 4, 9, 99, 999}
		ids := d.flush(many(len(tried), "")...)
		for i, n := range tried {
			d.exec(`update public.outbox set attempts = $2, available_at = clock_timestamp() where id = $1::uuid`, ids[i], n)
		}
		before := d.now()
		p := d.poll(failFirst(2000, "away"), setting{opt: outbox.Options{Attempts: 2000, BackoffMin: 10 * time.Second, BackoffMax: 90 * time.Second}})
		p.saw("a failure of each row", func() bool { return p.retried == len(tried) })
		p.mustStop(t)
		after := d.now()
		for i, n := range tried {
			raw := 90 * time.Second
			if n < 4 {
				raw = 10 * time.Second << n
			}
			d.is(ids[i], changes{
				"attempts": n + 1, "last_error": "away", "available_at": span{before.Add(raw / 2), after.Add(raw)},
			})
		}
	})
}

// C16: relaying twice sends once.
func TestRelayingTwiceSendsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(many(5, "")...)
		first := d.poll(acknowledge, setting{})
		d.becomes("published 5", states)
		first.mustStop(t)
		second := d.poll(acknowledge, setting{})
		second.saw("an empty claim", func() bool { return len(second.claims) > 0 })
		second.mustStop(t)
		same(t, "deliveries of the first", first.deliveries(), ids)
		if got := second.deliveries(); len(got) != 0 {
			t.Errorf("the second published %v", got)
		}
		for _, id := range ids {
			d.isPublished(id)
		}
	})
}
