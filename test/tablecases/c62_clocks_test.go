package tablecases

// C62 App clock against database clock.
// Source: wildanniam/koderea#102, kagkarlsson/db-scheduler#364, quartznet/quartznet#435,
// Koed00/django-q#236, contiamo/go-base#78.
// Ideal: due times and leases follow the database's clock alone: a delay of at most
// two seconds and no duplicate, whether the relay's clock is ten minutes ahead, ten
// minutes behind, or two relays disagree by twenty.

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const skew = 10 * time.Minute

func TestC62OnlyTheDatabasesClockCounts(t *testing.T) {
	t.Parallel()
	for _, skews := range [][]time.Duration{{skew}, {-skew}, {skew, -skew}} {
		t.Run(fmt.Sprint(skews), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) { wrongClocks(t, v, skews) })
		})
	}
}

func wrongClocks(t *testing.T, v pgserver.Version, skews []time.Duration) {
	tb := polled(t, v, "batch: 20, interval: 200ms, lease: 3s, reclaim_after: 5s, backoff_min: 1s, backoff_max: 1s, attempts: 1000")
	var houses []*rig.House
	for _, by := range skews {
		houses = append(houses, tb.Skewed(t, by))
	}
	relays := startAll(t, houses...)
	for i, r := range relays {
		if off := logClock(t, r); (off - skews[i]).Abs() > time.Minute {
			t.Fatalf("the relay's clock is off by %s, want %s", off, skews[i])
		}
	}
	tb.fill(t, 500, 50, 10)
	tb.published(t, soon)
	burst := tb.ask(t, `select max(published_at)::text from public.outbox`)
	for range 5 { // one by one: a delay is then nobody's but the clock's
		tb.fill(t, 1, 50, 1)
		tb.published(t, soon)
	}
	// Due one second from now by the database's clock: not before, and soon after.
	tb.Exec(t, `update public.outbox set status = 'pending', attempts = 1, published_at = null, event_id = gen_random_uuid(),
		available_at = clock_timestamp() + interval '1 second' where payload->>'n' = '500'`)
	tb.published(t, soon)
	if early := tb.ask(t, `select (count(*) filter (where published_at < available_at))::text from public.outbox`); early != "0" {
		t.Errorf("%s rows were published before they were due", early)
	}
	delay := tb.ask(t, `select max(extract(epoch from published_at - greatest(created_at, available_at)))::text from public.outbox where published_at > $1::text::timestamptz`, burst)
	t.Logf("the longest delay was %s s", delay)
	if tb.ask(t, `select ($1::text::float > 2)::text`, delay) == "true" {
		t.Errorf("a row waited %s s, want at most 2", delay)
	}
	stopAll(t, relays...)
	if got := len(tb.k.Consume(t, tb.Topic)); got != 506 {
		t.Errorf("%d records for 506 events: a lease was cut short", got)
	}
	for _, r := range relays {
		lacks(t, "the log", r.Log(), `"level":"error"`)
	}
}

var logTime = regexp.MustCompile(`"time":"([^"]+)"`)

// logClock is how far the relay's clock is ahead, as its first line shows it.
func logClock(t *testing.T, r *rig.Relay) time.Duration {
	t.Helper()
	m := logTime.FindStringSubmatch(r.Log())
	if m == nil {
		t.Fatalf("no time in the log: %.200s", r.Log())
	}
	at, err := time.Parse(time.RFC3339Nano, m[1])
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(at)
}
