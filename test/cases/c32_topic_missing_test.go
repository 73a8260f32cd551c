package cases

// C32 Topic missing, auto-create off
//
// Source: twmb/franz-go#86, #139, #675, open-telemetry/opentelemetry-collector-contrib#42468, it-at-m/digiwf-core#1415.
//
// Ideal: events for other topics keep flowing while those of a missing topic
// wait; the topic is named; memory is flat; once it is created the waiting rows
// arrive in order without a restart. The relay makes no topics of its own accord.
//
// Shortened: the topic is made once 3000 of its events wait, instead of after 2 min.

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC32MissingTopicHoldsBackItsOwnEventsOnlyAndInOrder(t *testing.T) {
	t.Parallel()
	h, k := newRowsHouse(t, pgserver.V18, 3)
	missing := "missing-" + h.Topic
	h.Routes = fmt.Sprintf("missing: {topic: %s}", missing)
	r := h.Start(t)
	// It is known from the route table, before the first of its events.
	contains(t, "/readyz", r.WaitNotReady(soon, missing), "does not exist", "create it")

	write := func(from, to int) {
		conn := h.PG.Conn(t, h.Database)
		for i := from; i < to; i++ {
			tx := begin(t, conn)
			for j := range 10 {
				n := int64(i*10 + j)
				route := "orders"
				if j%2 == 1 {
					route = "missing"
				}
				insertRow(t, tx, route, fmt.Sprintf("%s key %d", route, n%50), n)
			}
			commit(t, tx)
		}
	}
	write(0, 300)
	contains(t, "/readyz", r.WaitNotReady(soon, missing), "does not exist", "create it")
	// The known topic got everything up to now, also what was committed behind the waiting ones.
	k.ConsumeN(t, 1500, soon, h.Topic)
	resident, _ := r.RSS()
	write(300, 600)
	k.ConsumeN(t, 3000, soon, h.Topic)
	if now, _ := r.RSS(); now > resident+32<<20 {
		t.Errorf("memory rose from %d to %d MiB while the topic was missing", resident>>20, now>>20)
	}
	if topics, err := k.Admin(t).ListTopics(t.Context(), missing); err == nil && topics.Has(missing) && topics[missing].Err == nil {
		t.Error("the relay made the missing topic")
	}

	k.CreateTopic(t, missing, 3, nil)
	drain(t, h)
	r.WaitReady(soon)
	committed := committedRows(t, h)
	records := slices.Concat(k.Consume(t, h.Topic), k.Consume(t, missing))
	oracle.Require(t, committed, records, 0)
	if n := len(slices.DeleteFunc(records, func(rec *kgo.Record) bool { return rec.Topic != missing })); n != 3000 {
		t.Errorf("%d records in the topic that was missing, want 3000", n)
	}
	stopsClean(t, r)
}
