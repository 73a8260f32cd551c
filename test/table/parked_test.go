package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/rig"
)

// limit is the largest record that the topics of these tests take at first.
const limit = 3000

// raise lets the topic take larger records.
func raise(t *testing.T, k *kafkaserver.Server, topic string) {
	t.Helper()
	resp, err := k.Admin(t).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: new("1000000")}}, topic)
	if err == nil {
		_, err = resp.On(topic, func(r *kadm.AlterConfigsResponse) error { return r.Err })
	}
	if err != nil {
		t.Fatal(err)
	}
}

type parkedEntry struct {
	ID    int64
	State string
	Key   string
	Kept  string
}

func parkedList(t *testing.T, h *rig.House) (list []parkedEntry) {
	t.Helper()
	out, code := h.Command(t, "parked", "list", "--json")
	if code != 0 {
		t.Fatalf("parked list exited %d:\n%s", code, out)
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return list
}

// A poison row in the middle of its key: it is put aside, the later ones of its key
// wait, over a restart too; those of other keys flow. Told to go again, they arrive in
// order, and afterwards the key is as free as any.
func TestPoisonInTheMiddleOfItsKeyHoldsThatKeyAlone(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"forze", "basic", "debezium"} {
		for _, gear := range []string{"log", "poll"} {
			t.Run(preset+"/"+gear, func(t *testing.T) {
				t.Parallel()
				on(t, 1, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
					h.Topic = k.Topic(t, 1, map[string]string{"max.message.bytes": fmt.Sprint(limit)})
					after := "mark"
					if preset == "debezium" {
						after = "delete"
					}
					h.Preset = preset
					h.Postgres = "capture: " + gear
					h.Source = "after_publish: " + after + "\nsweep_every: 500ms\npoll: {interval: 200ms, lease: 3s}"
					h.Kafka = "on_poison: park"
					poisonHoldsItsKey(t, h, k)
				})
			})
		}
	}
}

func poisonHoldsItsKey(t *testing.T, h *rig.House, k *kafkaserver.Server) {
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(soon)
	put(t, h, "a", 1, 1, 0)
	put(t, h, "a", 2, 2, 2*limit)
	put(t, h, "a", 3, 4, 0)
	put(t, h, "b", 5, 6, 0)
	if got := numbers(k.ConsumeN(t, 3, soon, h.Topic)); got["a"] != "1" || got["b"] != "5 6" {
		t.Fatalf("arrived %v", got)
	}
	r.Eventually("the entry", soon, func() error {
		if list := parkedList(t, h); len(list) == 0 || list[0].State != "parked" || list[0].Key != "a" {
			return fmt.Errorf("entries %+v", list)
		}
		return nil
	})
	put(t, h, "a", 7, 7, 0)
	put(t, h, "b", 8, 8, 0)
	k.ConsumeN(t, 4, soon, h.Topic)
	stop(t, r)

	put(t, h, "a", 9, 9, 0)
	r = h.Start(t)
	r.WaitReady(soon)
	put(t, h, "a", 10, 10, 0)
	put(t, h, "b", 11, 200, 0)
	if got := numbers(k.ConsumeN(t, 4+190, soon, h.Topic)); got["a"] != "1" {
		t.Fatalf("after a restart the key was not held: %s", got["a"])
	}
	if h.Preset == "forze" {
		states(t, h, map[string]int{"published": 194, "failed": 1, "pending": 5})
	}

	// Told while nobody reads; a relay that starts knows the new limit at once.
	stop(t, r)
	raise(t, k, h.Topic)
	if out, code := h.Command(t, "parked", "retry", "--all"); code != 0 {
		t.Fatalf("parked retry exited %d: %s", code, out)
	}
	r = h.Start(t)
	r.Eventually("nothing put aside", soon, func() error {
		if n := ask(t, h, `select count(*)::text from walrelay.parked`); n != "0" {
			return errors.New(n + " events are put aside")
		}
		return nil
	})
	const inOrder = "1 2 3 4 7 9 10"
	if got := numbers(k.ConsumeN(t, 200, soon, h.Topic)); got["a"] != inOrder {
		t.Errorf("after the retry there are %q, want %q", got["a"], inOrder)
	}
	put(t, h, "a", 201, 202, 0)
	if got := numbers(k.ConsumeN(t, 202, soon, h.Topic)); got["a"] != inOrder+" 201 202" {
		t.Errorf("the key is not free: %q", got["a"])
	}
	owed := map[string]string{
		"forze":    `select count(*)::text from public.outbox where status <> 'published' or last_error is not null`,
		"basic":    `select count(*)::text from public.outbox where published_at is null`,
		"debezium": `select count(*)::text from public.outbox`,
	}[h.Preset]
	r.Eventually("no row owed", soon, func() error {
		if n := ask(t, h, owed); n != "0" {
			return errors.New(n + " rows")
		}
		return nil
	})
	stop(t, r)
	if n := len(k.Consume(t, h.Topic)); n != 202 {
		t.Errorf("%d records for 202 rows", n)
	}
}
