package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestReplayPublishesTheSameRecordsAndChangesNoRow(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 3, nil))
	h.Source = "after_publish: mark"
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(30 * time.Second)
	for n := 1; n <= 6; n++ {
		insertSized(t, h, []string{"a", "b"}[n%2], n, 0)
	}
	first := k.ConsumeN(t, 6, 30*time.Second, h.Topic)
	out, code := h.Command(t, "drain")
	wants(t, out, code, 0, "orders: drained, everything up to")
	state := func() string {
		return rowsOf(t, h, `select string_agg(o::text, E'\n' order by event_id) from public.outbox o`)
	}
	before := state()

	out, code = h.Command(t, "replay", "--route", "orders", "--since", "2000-01-01", "--until", "2999-01-01", "--dry-run")
	wants(t, out, code, 0, "6 events would be published again ("+h.Topic+" 6)")
	out, code = h.Command(t, "replay", "--event-id", "00000000-0000-0000-0000-000000000003")
	wants(t, out, code, 0, "orders: 1 event published again")
	again := k.ConsumeN(t, 7, 30*time.Second, h.Topic)
	for _, old := range first {
		if !strings.Contains(string(old.Value), `"n": 3`) {
			continue
		}
		copies := 0
		for _, rec := range again {
			if string(rec.Value) == string(old.Value) && string(rec.Key) == string(old.Key) && rec.Partition == old.Partition {
				copies++
				for i := range rec.Headers {
					if rec.Headers[i].Key != old.Headers[i].Key || string(rec.Headers[i].Value) != string(old.Headers[i].Value) {
						t.Errorf("header %v, want %v", rec.Headers[i], old.Headers[i])
					}
				}
			}
		}
		if copies != 2 {
			t.Errorf("%d copies of event 3, want 2", copies)
		}
	}
	out, code = h.Command(t, "replay", "--route", "orders", "--since", "2000-01-01", "--until", "2999-01-01T00:00:00Z", "--limit", "4")
	wants(t, out, code, 0, "4 events published again")
	out, code = h.Command(t, "replay", "--route", "other", "--since", "2000-01-01", "--until", "2999-01-01")
	wants(t, out, code, 0, "0 events published again")
	if got := len(k.ConsumeN(t, 11, 30*time.Second, h.Topic)); got != 11 {
		t.Errorf("%d records, want 11", got)
	}
	if after := state(); after != before {
		t.Errorf("rows changed:\n%s\nbefore:\n%s", after, before)
	}
	for _, args := range [][]string{
		{"--route", "orders"},
		{"--event-id", "x", "--route", "orders"},
		{"--route", "orders", "--since", "yesterday", "--until", "2999-01-01"},
	} {
		out, code = h.Command(t, append([]string{"replay"}, args...)...)
		wants(t, out, code, 2, "replay:")
	}
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("the stop exited %d", code)
	}
}

// What cannot be published ends the replay with a reason, and puts nothing aside.
func TestReplayOfAnEventThatIsRefusedSaysSo(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V15), k.Brokers(), k.Topic(t, 1, map[string]string{"max.message.bytes": "3000"}))
	h.Source, h.Kafka = "after_publish: mark", "on_poison: park"
	h.Init(t)
	insertSized(t, h, "a", 1, 5000)
	h.Exec(t, `update public.outbox set status = 'published', published_at = now()`)
	out, code := h.Command(t, "replay", "--event-id", "00000000-0000-0000-0000-000000000001")
	wants(t, out, code, 3, "too large", "0 events published again")
	if list := listParked(t, h); len(list) != 0 {
		t.Errorf("entries %+v", list)
	}
}
