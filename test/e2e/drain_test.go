package e2e

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestDrainWaitsForTheLogAndExitsFiveWhenNobodyReadsIt(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 3, nil))
	h.Source = "after_publish: mark"
	h.Init(t)
	h.Insert(t, "orders", "a", "b", "a")
	out, code := h.Command(t, "drain", "--timeout", "2s")
	wants(t, out, code, 5, "not drained after 2s", "no relay is connected", "bytes before", "runbook.md#drain-incomplete")
	r := h.Start(t)
	out, code = h.Command(t, "drain", "--timeout", "50s")
	wants(t, out, code, 0, "orders: drained, everything up to")
	if got := len(k.ConsumeN(t, 3, time.Second, h.Topic)); got != 3 {
		t.Errorf("%d records after the drain, want 3", got)
	}
	if got := rowsOf(t, h, `select count(*)::text from public.outbox where status <> 'published'`); got != "0" {
		t.Errorf("%s rows are not marked after the drain", got)
	}
	out, code = h.Command(t, "drain", "--source", "orders") // idle
	wants(t, out, code, 0, "drained")
	out, code = h.Command(t, "drain", "--source", "other")
	wants(t, out, code, 2, `no source "other"`)
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("the stop exited %d", code)
	}
}

func TestDrainOfAPolledTableWaitsForItsRowsAndNotForThoseBehindAParkedEvent(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V15), k.Brokers(), k.Topic(t, 1, map[string]string{"max.message.bytes": "3000"}))
	h.Postgres, h.Source, h.Kafka = "capture: poll", "after_publish: mark", "on_poison: park"
	h.Init(t)
	insertSized(t, h, "a", 1, 0)
	insertSized(t, h, "b", 2, 5000)
	insertSized(t, h, "b", 3, 0)
	out, code := h.Command(t, "drain", "--timeout", "2s")
	wants(t, out, code, 5, "3 rows are not published", "runbook.md#drain-incomplete")
	r := h.Start(t)
	out, code = h.Command(t, "drain", "--timeout", "50s")
	wants(t, out, code, 0, "orders: drained, every row that was there is published", "1 key is held by parked events")
	if got := rowsOf(t, h, `select string_agg(status, ' ' order by event_id) from public.outbox`); got != "published failed pending" {
		t.Errorf("rows are %s", got)
	}
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("the stop exited %d", code)
	}
}
