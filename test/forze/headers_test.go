package forze

// Battery E, with B6, B7 and B15: what a consumer of the topic gets of a row, byte for byte
// where forze promises bytes.

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/pgserver"
)

func contains(text, what string) bool { return strings.Contains(text, what) }

// headers are a record's, in order.
func headers(r *kgo.Record) (all []string) {
	for _, h := range r.Headers {
		all = append(all, h.Key+"="+string(h.Value))
	}
	return all
}

const (
	tenant      = "0198f3a0-0000-7000-8000-00000000000a"
	execution   = "0198f3a0-0000-7000-8000-00000000000b"
	correlation = "0198f3a0-0000-7000-8000-00000000000c"
	causation   = "0198f3a0-0000-7000-8000-00000000000d"
	trace       = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// full and bare are the rows of E1 and E2: everything set, and nothing that may be NULL.
func full(event string) given {
	return given{
		event: event, key: "order-1", typ: "order.created", payload: `{"id": "0198f3a0-0000-7000-8000-000000000001", "at": "2026-06-01T12:00:00+00:00", "price": "19.99"}`,
		tenant: tenant, execution: execution, correlation: correlation, causation: causation, trace: trace,
		occurred: time.Date(2026, 6, 1, 12, 0, 0, 7000, time.UTC), hlc: 111411200000000003,
	}
}

func bare(event string) given {
	return given{event: event, typ: "order.paid", payload: `{}`, occurred: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
}

// E1, E2, B6, B7, B15: the headers of a full row and of a bare one, in forze's order; the key
// is the ordering key, or the event id without one; the body is the payload, with its text
// values as they are; the rows keep every column.
func TestRecordSaysOfARowWhatForzeWouldSay(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		for _, w := range []way{byPolling, byLog} {
			t.Run(string(w), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, v, w)
				// Times are printed in UTC whatever the database's zone is.
				h.PG.ExecIn(t, "postgres", fmt.Sprintf(`alter database %s set timezone = 'Europe/Moscow'`, h.Database))
				const one, two = "0198f3a0-0000-7000-8000-000000000011", "0198f3a0-0000-7000-8000-000000000012"
				r := h.start(t)
				ids := h.flush(full(one), bare(two))
				h.becomes("published 2", states)
				stop(t, r)
				got := map[string]*kgo.Record{}
				for _, rec := range h.records(t, 2) {
					got[string(rec.Key)] = rec
				}
				rec := got["order-1"]
				if rec == nil || got[two] == nil || len(got) != 2 {
					t.Fatalf("records %v, want one with key order-1 and one with its event id", got)
				}
				same(t, "headers of the full row", headers(rec), []string{
					"forze_event_id=" + one, "forze_occurred_at=2026-06-01T12:00:00.000007+00:00", "forze_correlation_id=" + correlation,
					"forze_causation_id=" + causation, "forze_execution_id=" + execution, "forze_tenant_id=" + tenant,
					"forze_hlc=001700000000000.00003", "traceparent=" + trace, "forze_type=order.created",
				})
				same(t, "headers of the bare row", headers(got[two]), []string{
					"forze_event_id=" + two, "forze_occurred_at=2026-06-01T12:00:00+00:00", "forze_type=order.paid",
				})
				var body map[string]any
				if err := json.Unmarshal(rec.Value, &body); err != nil {
					t.Fatal(err)
				}
				want := map[string]any{"id": "0198f3a0-0000-7000-8000-000000000001", "at": "2026-06-01T12:00:00+00:00", "price": "19.99"}
				if !reflect.DeepEqual(body, want) || string(got[two].Value) != "{}" {
					t.Errorf("bodies %s and %s, want %v and {}", rec.Value, got[two].Value, want)
				}
				if rec.Partition != 1 { // murmur2("order-1") over 3 partitions
					t.Errorf("order-1 is in partition %d, want 1, where a Java client puts it", rec.Partition)
				}
				for _, id := range ids {
					h.isMarked(id, nil)
				}
			})
		}
	})
}

// E4, E5, B14: events of one key keep their order, ciphertext passes untouched and is known
// by its first bytes, and a consumer with an inbox skips what is delivered again.
func TestEventsOfOneKeyKeepTheirOrderAndCiphertextIsOpaque(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		h := newHouse(t, v, byPolling)
		h.PG.ExecIn(t, h.Database, inbox)
		at := h.now().Truncate(time.Millisecond)
		stamp := at.UnixMilli() << 16
		ids := h.flush(
			given{key: "k", payload: `{"n": 1}`, created: at, hlc: stamp}, given{key: "k", payload: `{"__fz_enc__": "b3BhcXVl"}`, created: at, hlc: stamp + 1},
			given{key: "k", payload: `{"n": 3}`, created: at, hlc: stamp + 2},
		)
		r := h.start(t)
		h.becomes("published 3", states)
		stop(t, r)
		records := h.records(t, 3)
		var bodies []string
		for _, rec := range records {
			bodies = append(bodies, string(rec.Value))
		}
		same(t, "bodies", bodies, []string{`{"n": 1}`, `{"__fz_enc__": "b3BhcXVl"}`, `{"n": 3}`})
		if n := h.apply(t, "c", true, records); n != 3 {
			t.Errorf("%d were applied, want 3: an inbox knows events by their id, not by their key", n)
		}
		if n := h.apply(t, "c", true, records); n != 0 {
			t.Errorf("%d were applied when delivered again, want none", n)
		}
		for _, id := range ids {
			h.isMarked(id, nil)
		}
	})
}
