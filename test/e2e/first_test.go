package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestCommittedRowArrivesWithItsBytesKeyAndHeaders(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 3, nil))
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(30 * time.Second)
	h.Exec(t, `begin; insert into outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
		values (gen_random_uuid(), '0198f3a0-0000-7000-8000-000000000001', 'orders', 'OrderPlaced', 'pending', '2026-06-01 12:00:00.000007+00', now(), '{"a": 1e400, "b": [1, 2]}', 'order-1'); commit`)
	records := k.ConsumeN(t, 1, 30*time.Second, h.Topic)
	rec := records[0]
	if string(rec.Key) != "order-1" || rec.Partition != 1 {
		t.Errorf("key %q in partition %d, want order-1 in 1", rec.Key, rec.Partition)
	}
	if want := `{"a": 1` + strings.Repeat("0", 400) + `, "b": [1, 2]}`; string(rec.Value) != want {
		t.Errorf("value %q, want %q", rec.Value, want)
	}
	var headers []string
	for _, h := range rec.Headers {
		headers = append(headers, h.Key+"="+string(h.Value))
	}
	want := "forze_event_id=0198f3a0-0000-7000-8000-000000000001 forze_occurred_at=2026-06-01T12:00:00.000007+00:00 forze_type=OrderPlaced"
	if got := strings.Join(headers, " "); got != want {
		t.Errorf("headers %s\nwant    %s", got, want)
	}
	if code, took := r.Stop(); code != 0 || took > 5*time.Second {
		t.Errorf("the stop took %s and exited %d, want 0 at once", took, code)
	}
}

func TestStatusShowsTheSlotInUseSoonAfterTheStart(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
	h.Postgres = "check_interval: 1h"
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(30 * time.Second)
	r.Eventually("the slot in use on the status page", 15*time.Second, func() error {
		st, err := r.Status()
		if err != nil {
			return err
		}
		if s := st.Sources[0].Slot; s == nil || !s.Active {
			return fmt.Errorf("slot %+v", s)
		}
		return nil
	})
}
