package config

import (
	"strings"
	"testing"
)

// tabled is the minimal configuration with lines put into its parts: of the
// section postgres, of the source, and of the kafka section.
func tabled(pg, source, kafka string) string {
	text := strings.Replace(minimal, "kafka:\n", block(source, "    ")+"kafka:\n", 1)
	text = strings.Replace(text, "      tables: [public.outbox]\n", "      tables: [public.outbox]\n"+block(pg, "      "), 1)
	return text + block(kafka, "  ")
}

func block(lines, by string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		b.WriteString(by + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

func TestDefaultsFollowFromTheSchemaAndTheCapture(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pg, source             string
		after, claim, onPoison string
		batch                  int
	}{
		{"", "", "mark", "row", "park", 500},
		{"", "schema: basic", "mark", "lease", "park", 5000},
		{"", "schema: debezium", "keep", "row", "park", 500},
		{"capture: poll", "schema: debezium", "delete", "row", "park", 500},
		{"capture: poll", "poll: {claim: lease}", "mark", "lease", "park", 5000},
		{"capture: auto", "poll: {batch: 7}", "mark", "row", "park", 7},
		{"bookkeeping: none", "", "keep", "row", "stop", 500},
		{`bookkeeping: '"none"'`, "", "keep", "row", "stop", 500},
		{"", "after_publish: delete", "delete", "row", "park", 500},
	} {
		got := mustLoad(t, world{}, tabled(c.pg, c.source, ""))
		s := &got.Sources[0].Value
		if s.AfterPublish != c.after || s.Poll.Claim != c.claim || s.Poll.Batch != c.batch || got.Kafka.OnPoison != c.onPoison {
			t.Errorf("%s %s: after_publish %s, claim %s, batch %d, on_poison %s; want %+v", c.pg, c.source, s.AfterPublish, s.Poll.Claim,
				s.Poll.Batch, got.Kafka.OnPoison, c)
		}
	}
	messages := mustLoad(t, world{}, strings.Replace(minimal, "tables: [public.outbox]", "messages: [outbox]", 1))
	if got := messages.Sources[0].Value.AfterPublish; got != "keep" {
		t.Errorf("a source of messages has after_publish %s", got)
	}
}

func TestPollingWithoutWhatItNeedsIsRefusedWithTheRemedy(t *testing.T) {
	t.Parallel()
	const pg, source = "sources.orders.postgres.", "sources.orders."
	for _, c := range []struct {
		pg, source, kafka string
		path              string
		parts             []string
	}{
		{"capture: poll\nbookkeeping: none", "", "", pg + "capture", []string{"needs bookkeeping", "schema"}},
		{"capture: auto\nbookkeeping: none", "", "", pg + "capture", []string{"needs bookkeeping"}},
		{"on_gap: catch_up\nbookkeeping: none", "", "", pg + "on_gap", []string{"needs bookkeeping"}},
		{"capture: poll", "after_publish: keep", "", pg + "capture", []string{"needs after_publish: mark or delete"}},
		{"capture: auto", "after_publish: keep", "", pg + "capture", []string{"needs after_publish: mark or delete"}},
		{"capture: auto", "schema: debezium", "", pg + "capture", []string{"needs after_publish: delete:"}},
		{"on_gap: catch_up", "after_publish: keep", "", pg + "on_gap", []string{"needs after_publish: mark or delete"}},
		{"on_gap: catch_up", "schema: debezium", "", pg + "on_gap", []string{"needs after_publish: delete:"}},
		{"capture: poll\nmessages: [outbox]", "", "", pg + "messages", []string{"in the log only", "auto"}},
		{"", "schema: debezium\nafter_publish: mark", "", source + "after_publish", []string{"no column", "delete or keep"}},
		{"bookkeeping: none", "after_publish: mark", "", source + "after_publish", []string{"bookkeeping: none", "keep"}},
		{"bookkeeping: none", "after_publish: delete", "", source + "after_publish", []string{"bookkeeping: none", "keep"}},
		{"bookkeeping: none", "", "on_poison: park", "kafka.on_poison", []string{"source orders", "stop or dlq"}},
		{"", "", "dlq_topic: x", "kafka.dlq_topic", []string{"on_poison is park"}},
		{"", "schema: basic\npoll: {claim: row}", "", source + "poll.claim", []string{"no column for a claim", "lease"}},
		{"", "retention: {keep_published: 1h}\nafter_publish: delete", "", source + "retention.keep_published", []string{"after_publish: mark"}},
		{"", "poll: {notify: true}", "", source + "poll.notify", []string{"capture: log"}},
		{"", "poll: {lease: 1s}", "", source + "poll.lease", []string{"3s or more"}},
		{"", "poll: {lease: 2m}", "", source + "poll.reclaim_after", []string{"less than poll.lease"}},
		{"", "poll: {backoff_min: 10m}", "", source + "poll.backoff_min", []string{"more than backoff_max"}},
		{"", "poll: {shards: 2000}", "", source + "poll.shards", []string{"1 to 1024"}},
		{"", "poll: {attempts: 0}", "", source + "poll.attempts", []string{"1 to 1000"}},
		{"", "parked_budget: 0", "", source + "parked_budget", []string{"1 or more"}},
	} {
		wantProblem(t, problemsOf(t, world{}, tabled(c.pg, c.source, c.kafka)), c.path, 0, c.parts...)
	}
	messages := strings.Replace(minimal, "tables: [public.outbox]", "messages: [outbox]\n      capture: auto", 1)
	wantProblem(t, problemsOf(t, world{}, messages), pg+"capture", 0, "needs tables")
	messages = strings.Replace(minimal, "tables: [public.outbox]", "messages: [outbox]\n    after_publish: delete", 1)
	wantProblem(t, problemsOf(t, world{}, messages), source+"after_publish", 0, "no tables")
}

func TestMessagesThatWaitWhilePollingAreWarnedOf(t *testing.T) {
	t.Parallel()
	_, warnings, err := world{}.load(tabled("capture: auto\nmessages: [outbox]", "", ""))
	if err != nil || len(warnings) != 1 || warnings[0].Name != "sources.orders.postgres.messages" || !strings.Contains(warnings[0].What, "lost") {
		t.Errorf("%v %v", warnings, err)
	}
}

func TestPolledSourceHasNoSlotToShare(t *testing.T) {
	t.Parallel()
	two := tabled("slot: s\ncapture: poll", "", "")
	two = strings.Replace(two, "kafka:", "  second:\n    postgres: {url: \"postgres://relay@localhost:5432/shop?sslmode=disable\", tables: [o], slot: s}\nkafka:", 1)
	mustLoad(t, world{}, two)
	wantProblem(t, problemsOf(t, world{}, strings.Replace(two, "capture: poll", "capture: log", 1)), "sources.second.postgres.slot", 0, "slot of source orders")
}
