package cases

// C73 Label explosion
//
// Source: pingcap/tiflow#2183, llm-d/llm-d-batch-gateway#202, scylladb/scylla-manager#3458.
//
// Ideal: after 50 000 distinct tenants, routes and types there are fewer than
// 1 000 series, as many as before; a scrape takes less than 100 ms; the memory is
// flat. More topics than get a label of their own share one.

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// insertDistinct commits rows with numbers from first to last, each with a tenant,
// route, type and key of its own.
const insertDistinct = `insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, tenant_id)
	select gen_random_uuid(), gen_random_uuid(), $1 || n, 'Type' || n, now(), '{}', 'key' || n, gen_random_uuid()
	from generate_series($2::bigint, $3::bigint) as n order by n`

// series counts the lines of a scrape that hold a value, and fails on a label
// value that a collector would refuse.
func series(t *testing.T, r *rig.Relay) (n int) {
	t.Helper()
	_, body, err := r.Get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.ValidString(body) {
		t.Error("/metrics is not valid UTF-8")
	}
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// scrape is the quickest of twenty scrapes: the machine has other things to do.
func scrape(t *testing.T, r *rig.Relay) time.Duration {
	t.Helper()
	best := time.Hour
	for range 20 {
		began := time.Now()
		series(t, r)
		best = min(best, time.Since(began))
	}
	return best
}

func TestC73FiftyThousandTenantsRoutesAndTypesMakeNoSeries(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 3, nil))
	h.Init(t)
	r := h.Start(t)
	drained(t, h, write(t, h, insertDistinct, "route", 1, 25_000), soon)
	before := series(t, r)
	_, peakBefore := r.RSS()
	drained(t, h, write(t, h, insertDistinct, "route", 25_001, 50_000), soon)
	after, took := series(t, r), scrape(t, r)
	_, peak := r.RSS()
	t.Logf("%d series, then %d; a scrape takes %s; peak memory %d MiB, then %d", before, after, took, peakBefore>>20, peak>>20)
	if after >= 1000 || after > before+5 {
		t.Errorf("%d series after 25 000 routes, %d after 50 000; want the same, below 1000", before, after)
	}
	if took > 100*time.Millisecond {
		t.Errorf("a scrape takes %s, bound is 100 ms", took)
	}
	if peak > peakBefore+16<<20 {
		t.Errorf("peak memory went from %d to %d MiB, want it flat", peakBefore>>20, peak>>20)
	}
	if n := published(t, r); n != 50_000 {
		t.Errorf("%d events were published, want 50000", n)
	}
}

func TestC73MoreTopicsThanLabelsShareOne(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
	letters := k.Topic(t, 1, nil)
	h.Routes = `"*": {topic: "` + h.Topic + `-{route}"}`
	h.Kafka = "create_topics: true\npartitions: 1\non_poison: dlq\ndlq_topic: " + letters
	h.Init(t)
	r := h.Start(t)
	write(t, h, insertDistinct, "r", 1, 250)
	drained(t, h, write(t, h, insertDistinct, "no topic is called so: ", 1, 500), 2*soon)
	n, took := series(t, r), scrape(t, r)
	t.Logf("%d series, a scrape takes %s", n, took)
	if n >= 1000 || took > 100*time.Millisecond {
		t.Errorf("%d series, a scrape takes %s, want less than 1000 and 100 ms", n, took)
	}
	if all := r.Metric("walrelay_topic_records_total"); all != 750 {
		t.Errorf("the topics' series sum up to %v records, want 750", all)
	}
	if rest := r.Metric("walrelay_topic_records_total", `topic="other"`); rest < 40 {
		t.Errorf("%v records are counted as other, want those of more than 40 topics", rest)
	}
	if n := len(k.Consume(t, letters)); n != 500 {
		t.Errorf("%d dead letters, want 500", n)
	}
}
