package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// parkedEntry is what parked list --json says, as far as the tests ask.
type parkedEntry struct {
	ID                                     int64
	State, Key, Kept, Reason, Topic, Error string
	EventID                                string `json:"event_id"`
	Payload                                *string
	Bytes                                  *int `json:"payload_bytes"`
}

func listParked(t *testing.T, h *rig.House, args ...string) (list []parkedEntry) {
	t.Helper()
	out, code := h.Command(t, append([]string{"parked", "list", "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("parked list exited %d:\n%s", code, out)
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	return list
}

const secretWord = "only-with-payload"

// insertSized writes one event; its number is its payload's n, and pad makes it larger.
func insertSized(t *testing.T, h *rig.House, key string, n, pad int) {
	t.Helper()
	h.Exec(t, `insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
		values (gen_random_uuid(), ('00000000-0000-0000-0000-' || lpad(($2::int)::text, 12, '0'))::uuid, 'orders', 'Tested', 'pending', now(), clock_timestamp(),
		jsonb_build_object('n', $2::int, 'word', $4::text, 'pad', repeat('x', $3::int)), $1)`, key, n, pad, secretWord)
}

// numbersOf are the payloads' n of each key, in the order of arrival.
func numbersOf(records []*kgo.Record) map[string]string {
	byKey := map[string]string{}
	for _, rec := range records {
		var payload struct{ N int }
		_ = json.Unmarshal(rec.Value, &payload)
		byKey[string(rec.Key)] = strings.TrimSpace(fmt.Sprintf("%s %d", byKey[string(rec.Key)], payload.N))
	}
	return byKey
}

// A poison row in the middle of its key: it is put aside, the later ones of its key wait,
// over a restart too, all others flow; told to go again, they arrive in order.
func TestParkedRowHoldsItsKeyUntilItIsRetried(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, map[string]string{"max.message.bytes": "3000"}))
	h.Source, h.Kafka = "after_publish: mark\nsweep_every: 500ms", "on_poison: park"
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(30 * time.Second)
	insertSized(t, h, "a", 1, 0)
	insertSized(t, h, "a", 2, 5000)
	insertSized(t, h, "a", 3, 0)
	insertSized(t, h, "b", 4, 0)
	if got := numbersOf(k.ConsumeN(t, 2, 30*time.Second, h.Topic)); got["a"] != "1" || got["b"] != "4" {
		t.Fatalf("arrived %v", got)
	}
	var list []parkedEntry
	r.Eventually("the entry", 20*time.Second, func() error {
		if list = listParked(t, h); len(list) != 1 {
			return fmt.Errorf("%d entries", len(list))
		}
		return nil
	})
	e := list[0]
	if e.State != "parked" || e.Key != "a" || e.Kept != "row" || e.Reason != "too_large" || e.Topic != h.Topic || !strings.HasSuffix(e.EventID, "2") {
		t.Errorf("entry %+v", e)
	}
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("the stop exited %d", code)
	}
	r = h.Start(t)
	r.WaitReady(30 * time.Second)
	insertSized(t, h, "a", 5, 0)
	insertSized(t, h, "b", 6, 0)
	if got := numbersOf(k.ConsumeN(t, 3, 30*time.Second, h.Topic)); got["a"] != "1" || got["b"] != "4 6" {
		t.Fatalf("after a restart there are %v: the key was not held", got)
	}

	id := fmt.Sprint(e.ID)
	out, code := h.Command(t, "parked", "list")
	wants(t, out, code, 0, "SOURCE", "orders", "too_large", "parked", "row")
	out, code = h.Command(t, "parked", "show", id)
	wants(t, out, code, 0, "the limit is 3000", "public.outbox", h.Topic)
	if strings.Contains(out, secretWord) {
		t.Errorf("the payload was printed:\n%s", out)
	}
	out, code = h.Command(t, "parked", "list", "--key", "b")
	wants(t, out, code, 0, "nothing is put aside")
	out, code = h.Command(t, "parked", "show", "4711")
	wants(t, out, code, 1, "no parked event 4711", "runbook")
	out, code = h.Command(t, "parked", "retry", id, "4711")
	wants(t, out, code, 1, "1 event was told to go again", "no parked event 4711")
	r.Eventually("the event to be refused once more", 30*time.Second, func() error {
		if list = listParked(t, h, "--state", "parked"); len(list) != 1 || list[0].ID != e.ID {
			return fmt.Errorf("entries %+v", list)
		}
		return nil
	})

	resp, err := k.Admin(t).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: new("100000")}}, h.Topic)
	if err != nil || resp[0].Err != nil {
		t.Fatal(err, resp)
	}
	// The relay reads the limits of known topics every 30 s.
	r.Eventually("the event under the new limit", 90*time.Second, func() error {
		if _, code := h.Command(t, "parked", "retry", "--all"); code != 0 {
			return fmt.Errorf("parked retry exited %d", code)
		}
		if left := listParked(t, h); len(left) > 0 {
			return fmt.Errorf("entries %+v", left)
		}
		return nil
	})
	if got := numbersOf(k.ConsumeN(t, 6, 60*time.Second, h.Topic)); got["a"] != "1 2 3 5" || got["b"] != "4 6" {
		t.Errorf("arrived %v", got)
	}
	insertSized(t, h, "a", 7, 0) // through the log again
	if got := numbersOf(k.ConsumeN(t, 7, 30*time.Second, h.Topic)); got["a"] != "1 2 3 5 7" {
		t.Errorf("arrived %v", got)
	}
	out, code = h.Command(t, "drain", "--timeout", "30s")
	wants(t, out, code, 0, "orders: drained")
	if got := rowsOf(t, h, `select string_agg(distinct status, ',') from public.outbox`); got != "published" {
		t.Errorf("rows are %s", got)
	}
}
