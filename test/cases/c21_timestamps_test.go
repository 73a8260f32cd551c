package cases

// C21 `infinity`, BC and far-future timestamps
//
// Source: DBZ-6912, estuary/connectors#781, transferwise/pipelinewise-tap-postgres#62, airbytehq/airbyte#14590.
//
// Ideal: such a row is delivered with a lossless header and a sane Kafka
// timestamp, and stops nobody; `available_at = infinity` means "never".
//
// The same for `available_at` in polling mode comes with polling.

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC21TimestampsBeyondTheCalendarAreDeliveredLosslessly(t *testing.T) {
	t.Parallel()
	h, k := newRowsHouse(t, pgserver.V15, 3)
	h.Routes = fmt.Sprintf("\"*\": {topic: %s, timestamp: occurred_at}", h.Topic)
	began := time.Now()
	cases := []struct{ occurred, header string }{
		{"infinity", "infinity"},
		{"-infinity", "-infinity"},
		{"0044-03-15 12:00 BC", "0044-03-15 12:00:00+00 BC"},
		{"294276-12-31 23:59:59.999999", "294276-12-31 23:59:59.999999+00"},
		{"4713-01-01 00:00 BC", "4713-01-01 00:00:00+00 BC"},
		{"9999-12-31 23:59:59.999999", "9999-12-31T23:59:59.999999+00:00"},
		{"2001-02-03 04:05:06", "2001-02-03T04:05:06+00:00"},
	}
	for i, c := range cases {
		h.Exec(t, `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
			values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', $1::text::timestamptz, to_jsonb($2::text), 'key')`, c.occurred, c.occurred)
		h.Exec(t, `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
			values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), to_jsonb('after'::text), $1)`, fmt.Sprint("other ", i))
	}
	r := h.Start(t)
	records := k.ConsumeN(t, 2*len(cases), soon, h.Topic)
	if len(records) != 2*len(cases) {
		t.Errorf("%d records, want %d", len(records), 2*len(cases))
	}
	arrived := map[string]*kgo.Record{}
	for _, rec := range records {
		arrived[string(rec.Value)] = rec
	}
	for _, c := range cases {
		rec := arrived[fmt.Sprintf("%q", c.occurred)]
		if rec == nil {
			t.Errorf("the event of %s did not arrive", c.occurred)
			continue
		}
		if got, _ := header(rec, "forze_occurred_at"); got != c.header {
			t.Errorf("occurred_at %s is in the header as %q, want %q", c.occurred, got, c.header)
		}
		if c.occurred == "2001-02-03 04:05:06" {
			if want := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC); !rec.Timestamp.Equal(want) {
				t.Errorf("an ordinary occurred_at gives the record the time %s, want %s", rec.Timestamp.UTC(), want)
			}
			continue
		}
		// No topic takes the year 9999 either: what cannot be goes out with its commit time.
		if rec.Timestamp.Before(began.Add(-time.Minute)) || rec.Timestamp.After(time.Now().Add(time.Minute)) {
			t.Errorf("occurred_at %s gives the record the time %s, want that of its commit", c.occurred, rec.Timestamp.UTC())
		}
	}
	r.WaitReady(soon)
}

func TestC21AvailableAtInfinityIsNeverAndNotNow(t *testing.T) {
	t.Parallel()
	h, k := newRowsHouse(t, pgserver.V18, 1)
	r := h.Start(t)
	for _, available := range []string{"infinity", "294276-12-31 23:59:59.999999", "-infinity", "0044-03-15 12:00 BC"} {
		h.Exec(t, `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, available_at)
			values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), to_jsonb($1::text), 'key', $1::text::timestamptz)`, available)
	}
	records := k.ConsumeN(t, 2, soon, h.Topic)
	if len(records) != 2 || string(records[0].Value) != `"-infinity"` || string(records[1].Value) != `"0044-03-15 12:00 BC"` {
		t.Errorf("arrived: %d records, first %s; want those of -infinity and of 44 BC", len(records), records[0].Value)
	}
	rig.Eventually(t, "two deferred events", soon, func() error {
		if n := source(t, r).Events.Deferred; n != 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	r.WaitReady(soon)
}
