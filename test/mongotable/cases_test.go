package mongotable

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/rig"
)

// C54 Two relays, one key, SKIP LOCKED.
// Source: AlexeyRaga/kafkaflow-contrib#24, aws-samples/transactional-outbox-pattern#6, kgrzybek/sample-dotnet-core-cqrs-api#15.
// Ideal: no inversion and no duplicate with any number of relays, and the work is shared.
// (1 000 documents instead of 10 000; the delay of one relay's produce is its linger.)
func TestC54ManyRelaysKeepTheOrderOfEachKey(t *testing.T) {
	t.Parallel()
	h := polled(t, 6, "batch: 5, interval: 200ms, lease: 3s")
	h.key = func(n int) string { return fmt.Sprint("key ", n%10) }
	relays := startAll(t, h.lingering(ms(150)), h.House, h.House)
	h.fill(t, 1000, 7)
	h.published(t)
	for i, r := range relays {
		n := publishedBy(t, r)
		t.Logf("relay %d published %d", i, n)
		if n == 0 {
			t.Errorf("relay %d had no share of ten keys", i)
		}
	}
	stop(t, relays...)
	h.judge(t, 0)
}

// late is a house where route "late" leads to a topic that is not there.
func late(t *testing.T, stream, options, route string) (h *house, topic string) {
	t.Helper()
	h = newHouse(t, 1)
	topic = h.Topic + "-late"
	h.Stream, h.Source = "capture: "+stream, "after_publish: mark\nsweep_every: 500ms\npoll: {interval: 200ms, "+options+"}"
	h.Routes = fmt.Sprintf("\"late\": {topic: %s%s}", topic, route)
	return h, topic
}

// C55 Retry lets the next row pass.
// Source: ow00us/sb11-mopl-team1#266.
// Ideal: later documents of the key wait for the one that fails, other keys do not; what happens once
// it is given up (park and hold the key, or pass on) is explicit and visible.
func TestC55LaterDocumentsOfAKeyWaitForTheOneThatFails(t *testing.T) {
	t.Parallel()
	h, topic := late(t, "poll", "backoff_min: 500ms, backoff_max: 1s, attempts: 1000", "")
	h.Init(t)
	r := h.Start(t) // not ready: a topic is missing
	a := h.one(t, "late", "k")
	h.one(t, "orders", "k") // 2
	h.one(t, "orders", "k") // 3
	for range 3 {
		h.one(t, "orders", "other") // 4 to 6
	}
	failing := append(numbered(a), bson.E{Key: "attempts", Value: bson.D{{Key: "$gte", Value: 2}}}, bson.E{Key: "last_error", Value: bson.D{{Key: "$ne", Value: nil}}})
	h.matches(t, 1, failing)
	h.one(t, "orders", "other") // 7: the key that does not fail goes on
	if got := all(h.k.ConsumeN(t, 4, soon, h.Topic)); got != "4 5 6 7" {
		t.Fatalf("while the key waits the topic has %s", got)
	}
	h.k.CreateTopic(t, topic, 1, nil)
	h.published(t)
	if got := all(h.k.Consume(t, h.Topic)); got != "4 5 6 7 2 3" {
		t.Errorf("then the topic has %s", got)
	}
	if got := all(h.k.Consume(t, topic)); got != "1" {
		t.Errorf("the topic that was missing has %s, want 1", got)
	}
	h.matches(t, 1, append(numbered(a), bson.E{Key: "status", Value: "published"}, bson.E{Key: "last_error", Value: nil}))
	stop(t, r)
}

func TestC55DocumentThatIsGivenUpHoldsItsKeyUntilSomebodySaysSo(t *testing.T) {
	t.Parallel()
	h, topic := late(t, "poll", "backoff_min: 200ms, backoff_max: 200ms, attempts: 2", "")
	h.Init(t)
	r := h.Start(t) // not ready: a topic is missing
	h.one(t, "late", "k")
	h.one(t, "orders", "k")
	h.become(t, "failed 1, pending 1")
	h.command(t, 0, []string{"attempts", "k", "late"}, "parked", "list")
	h.one(t, "orders", "other")
	if got := all(h.k.ConsumeN(t, 1, soon, h.Topic)); got != "3" {
		t.Errorf("behind a document that was given up the topic has %s, want 3 alone", got)
	}
	h.k.CreateTopic(t, topic, 1, nil)
	h.command(t, 0, nil, "parked", "retry", "--all")
	h.published(t)
	if got := all(h.k.Consume(t, topic)) + ", " + all(h.k.Consume(t, h.Topic)); got != "1, 3 2" {
		t.Errorf("the topics have %s, want 1 and 3 2", got)
	}
	stop(t, r)
}

func TestC55RouteThatDoesNotHoldBackPassesOn(t *testing.T) {
	t.Parallel()
	h, _ := late(t, "poll", "backoff_min: 200ms, backoff_max: 200ms, attempts: 2", ", hold_back: false")
	h.Routes += fmt.Sprintf("\n\"*\": {topic: %s, hold_back: false}", h.Topic)
	h.Init(t)
	r := h.Start(t) // not ready: a topic is missing
	h.one(t, "late", "k")
	h.one(t, "orders", "k")
	h.become(t, "failed 1, published 1")
	if got := all(h.k.Consume(t, h.Topic)); got != "2" {
		t.Errorf("the topic has %s, want 2", got)
	}
	stop(t, r)
}

const lease = 3 * time.Second

// C57 Row stuck in processing.
// Source: hexclave/hexclave#1356 and #1030, xavierjohn/Trellis#644, heypinchy/pinchy#734.
// Ideal: what a killed relay had claimed is claimed again within lease and interval by any other,
// nothing is lost, and attempts count the try that was lost.
func TestC57WhatAKilledRelayHadClaimedIsClaimedAgain(t *testing.T) {
	t.Parallel()
	for _, survivor := range []string{"one that was there", "one that comes"} {
		t.Run(survivor, func(t *testing.T) {
			t.Parallel()
			// So that the kill does not fall between the broker's answer and the mark.
			h := polled(t, 3, fmt.Sprintf("batch: 500, interval: 200ms, lease: %s, reclaim_after: 10m", lease))
			first := startAll(t, h.lingering(time.Minute))[0]
			h.fill(t, 300, 300)
			h.become(t, "processing 300")
			var second *rig.Relay
			if survivor == "one that was there" {
				second = startAll(t, h.House)[0]
			}
			first.Kill()
			killed := time.Now()
			if second == nil {
				second = startAll(t, h.House)[0]
			}
			h.matches(t, 300, field("attempts", 1))
			t.Logf("claimed again %s after the kill", time.Since(killed).Round(10*time.Millisecond))
			h.published(t)
			stop(t, second)
			h.judge(t, 0)
			h.matches(t, 300, field("attempts", 1))
		})
	}
}

// C58 Batch outlives its own lease.
// Source: langwatch/langwatch#7037.
// Ideal: while a relay lives its claims are renewed, however slow the broker is: no duplicate. A claim that is
// lost all the same is logged and counted. (A linger of 8 s against a lease of 3 s.)
func TestC58ClaimsOfALivingRelayAreRenewed(t *testing.T) {
	t.Parallel()
	for _, claim := range []string{"row", "lease"} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			h := polled(t, 3, fmt.Sprintf("claim: %s, batch: 100, interval: 200ms, lease: %s, reclaim_after: %s", claim, lease, lease))
			slow := h.lingering(8 * time.Second)
			first := startAll(t, slow)[0]
			h.fill(t, 200, 100)
			if claim == "row" {
				rig.Eventually(t, "claims", soon, func() error {
					if h.count(t, field("status", "processing")) == 0 {
						return errNone
					}
					return nil
				})
			}
			// The second wants its share while the first has everything under way.
			second := startAll(t, slow)[0]
			h.fill(t, 200, 100)
			h.published(t)
			stop(t, first, second)
			h.judge(t, 0)
			h.matches(t, 0, field("attempts", bson.D{{Key: "$gt", Value: 0}})) // or somebody took it away
		})
	}
}

func TestC58LostClaimIsCountedAndSaid(t *testing.T) {
	t.Parallel()
	h := polled(t, 3, "batch: 100, interval: 200ms")
	r := startAll(t, h.lingering(15*time.Second))[0]
	h.fill(t, 10, 10)
	h.become(t, "processing 10")
	// Somebody else's reaper, or an operator, takes the claims away.
	h.set(t, bson.D{}, bson.D{{Key: "status", Value: "pending"}, {Key: "processing_at", Value: nil}, {Key: "available_at", Value: after(hour)}})
	rig.Eventually(t, "the lost claims in the metrics", soon, func() error {
		if n := r.Metric("walrelay_claims_lost_total"); n != 10 {
			return fmt.Errorf("they count %v", n)
		}
		return nil
	})
	if !strings.Contains(r.Log(), "lost") {
		t.Error("the log does not say so")
	}
	stop(t, r)
}

// C62 App clock against database clock.
// Source: wildanniam/koderea#102, kagkarlsson/db-scheduler#364, quartznet/quartznet#435, Koed00/django-q#236, contiamo/go-base#78.
// Ideal: due times and leases follow the database's clock alone: a delay of at most two seconds and no
// duplicate, whether the relay's clock is ten minutes ahead, ten minutes behind, or two relays disagree by twenty.
func TestC62OnlyTheDatabasesClockCounts(t *testing.T) {
	t.Parallel()
	const skew = 10 * time.Minute
	for _, skews := range [][]time.Duration{{skew}, {-skew}, {skew, -skew}} {
		t.Run(fmt.Sprint(skews), func(t *testing.T) {
			t.Parallel()
			wrongClocks(t, skews)
		})
	}
}

func wrongClocks(t *testing.T, skews []time.Duration) {
	h := polled(t, 6, "batch: 20, interval: 200ms, lease: 3s, reclaim_after: 5s, backoff_min: 1s, backoff_max: 1s, attempts: 1000")
	var houses []*rig.House
	for _, by := range skews {
		houses = append(houses, h.Skewed(t, by))
	}
	relays := startAll(t, houses...)
	for i, r := range relays {
		if off := logClock(t, r); (off - skews[i]).Abs() > time.Minute {
			t.Fatalf("the relay's clock is off by %s, want %s", off, skews[i])
		}
	}
	h.fill(t, 300, 10)
	h.published(t)
	for range 3 { // one by one: a delay is then nobody's but the clock's
		h.fill(t, 1, 1)
		h.published(t)
	}
	// Due one second from now by the database's clock: not before, and soon after.
	h.set(t, numbered(300), bson.D{
		{Key: "status", Value: "pending"},
		{Key: "attempts", Value: 1},
		{Key: "published_at", Value: nil},
		{Key: "event_id", Value: "again"},
		{Key: "available_at", Value: after(time.Second)},
	})
	h.published(t)
	stop(t, relays...)
	if got := len(h.k.Consume(t, h.Topic)); got != 304 {
		t.Errorf("%d records for 304 events: a lease was cut short", got)
	}
	var docs []struct {
		Published time.Time  `bson:"published_at"`
		Created   time.Time  `bson:"created_at"`
		Available *time.Time `bson:"available_at"`
		Payload   struct{ N int }
	}
	cursor, err := h.c.Find(t.Context(), bson.D{{Key: "payload.n", Value: bson.D{{Key: "$gte", Value: 300}}}})
	if err == nil {
		err = cursor.All(t.Context(), &docs)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		due := d.Created
		if d.Available != nil {
			due = *d.Available
		} else if d.Payload.N == 300 {
			t.Error("the due time is gone")
		}
		if delay := d.Published.Sub(due); delay < 0 || delay > 2*time.Second {
			t.Errorf("document %d was published %s after it was due, want 0 to 2 s", d.Payload.N, delay)
		}
	}
	for _, r := range relays {
		if strings.Contains(r.Log(), `"level":"error"`) {
			t.Error("the log has errors")
		}
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

// C70 Two replicas by accident.
// Source: estuary/connectors#1705, kgrzybek/sample-dotnet-core-cqrs-api#15.
// Ideal: polling copies of one configuration share the work without a duplicate and in order, and when
// one is killed the others have its part within 30 s; of copies that read the stream one is active and
// another takes over within 30 s. (5 s of load instead of 10 minutes.)
func TestC70CopiesShareTheWorkOrStandBy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gear   string
		copies int
	}{{"poll", 2}, {"poll", 5}, {"stream", 2}, {"stream", 5}} {
		t.Run(fmt.Sprint(c.copies, " ", c.gear), func(t *testing.T) {
			t.Parallel()
			copiesShare(t, c.gear, c.copies)
		})
	}
}

func copiesShare(t *testing.T, gear string, copies int) {
	const batch = 50
	h := newHouse(t, 6)
	h.key = func(n int) string { return fmt.Sprint("key ", n%50) }
	h.Stream = "capture: " + gear
	h.Source = fmt.Sprintf("after_publish: mark\nsweep_every: 500ms\npoll: {batch: %d, interval: 100ms, lease: %s}", batch, lease)
	h.Init(t)
	relays := make([]*rig.Relay, copies)
	for i := range relays {
		relays[i] = h.Start(t)
	}
	relays[0].Eventually("all copies", soon, func() error {
		for i, r := range relays {
			st, err := r.Status()
			if err != nil {
				return err
			}
			if s := st.Sources[0].State; s != "streaming" && s != "standby" {
				return fmt.Errorf("copy %d is %s", i, s)
			}
		}
		return nil
	})
	load := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			h.fill(t, 20, 5)
		}
	}
	load(5 * time.Second)
	h.published(t)
	h.judge(t, 0) // nobody was killed yet
	active := -1
	working := 0
	for i, r := range relays {
		if publishedBy(t, r) > 0 {
			active = i
			working++
		}
	}
	if want := map[string]int{"poll": copies, "stream": 1}[gear]; working != want {
		t.Errorf("%d of %d copies did something, want %d", working, copies, want)
	}
	if active < 0 {
		t.Fatal("nobody works")
	}
	var loading sync.WaitGroup
	loading.Go(func() { load(4 * time.Second) })
	relays[active].Kill()
	killed := time.Now()
	loading.Wait()
	rig.Eventually(t, "the killed one's part", time.Until(killed.Add(30*time.Second)), func() error {
		if n := h.count(t, field("status", bson.D{{Key: "$ne", Value: "published"}})); n > 0 {
			return fmt.Errorf("%d documents are owed", n)
		}
		return nil
	})
	h.judge(t, 4*batch+100) // what it may have had in flight
	for i, r := range relays {
		if i != active {
			stop(t, r)
		}
	}
}
