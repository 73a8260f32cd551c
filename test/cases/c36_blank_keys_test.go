package cases

// C36 NULL, empty and blank ordering_key
//
// Source: confluentinc/librdkafka#4510.
//
// Ideal: no key at all is spread over the partitions; an empty key counts as none,
// before and after a restart; a blank is a key like any other. What stands for a
// missing key is the route's choice: the event id (the default), or nothing.
//
// As with the Java client, records without a key change the partition by bytes and
// not one by one, so the rows here have 4 kB.

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC36MissingEmptyAndBlankKeysAreToldApart(t *testing.T) {
	t.Parallel()
	const partitions, each = 12, 1000
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V16), k.Brokers(), k.Topic(t, partitions, nil))
	unkeyed := k.Topic(t, partitions, nil)
	h.Routes = fmt.Sprintf("unkeyed: {topic: %s, key_fallback: none}", unkeyed)
	h.Init(t)
	r := h.Start(t)
	insert := func() {
		for _, key := range []any{nil, "", " "} {
			h.Exec(t, `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
				select gen_random_uuid(), gen_random_uuid(), r, coalesce('key "' || $1::text || '"', 'no key'), now(), to_jsonb(repeat('x', 4000)), $1::text
				from generate_series(1, $2::int), unnest(array['orders', 'unkeyed']) r`, key, each/2)
		}
	}
	insert()
	drain(t, h)
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("the stop exited %d", code)
	}
	h.Start(t)
	insert()

	keyOf := map[string]func(*kgo.Record) []byte{
		h.Topic: func(rec *kgo.Record) []byte { return []byte(oracle.EventID(rec)) },
		unkeyed: func(*kgo.Record) []byte { return nil },
	}
	for topic, fallback := range keyOf {
		want := 3 * each
		if topic == h.Topic {
			want++ // that of drain
		}
		records := k.ConsumeN(t, want, soon, topic)
		if len(records) != want {
			t.Errorf("%d records in %s, want %d", len(records), topic, want)
		}
		counts := map[string]map[int32]int{}
		for _, rec := range records {
			kind, _ := header(rec, "forze_type")
			if counts[kind] == nil {
				counts[kind] = map[int32]int{}
			}
			counts[kind][rec.Partition]++
			key := fallback(rec)
			switch kind {
			case `key " "`:
				key = []byte(" ")
			case `key ""`, "no key":
			default:
				continue
			}
			// A null key and an empty one are different things to a consumer.
			if string(rec.Key) != string(key) || (rec.Key == nil) != (key == nil) {
				t.Errorf("an event with %s has record key %q (nil: %t), want %q", kind, rec.Key, rec.Key == nil, key)
			}
		}
		for kind, of := range map[string]int{"no key": partitions, `key ""`: partitions, `key " "`: 1} {
			if len(counts[kind]) != of {
				t.Errorf("events with %s are in %d partitions of %s, want %d: %v", kind, len(counts[kind]), topic, of, counts[kind])
			}
			// No partition may have more than three times its share.
			for p, n := range counts[kind] {
				if of > 1 && n > 3*each/partitions {
					t.Errorf("partition %d of %s holds %d of %d events with %s", p, topic, n, each, kind)
				}
			}
		}
	}
}
