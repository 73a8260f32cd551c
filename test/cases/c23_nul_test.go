package cases

// C23 NUL and half surrogates
//
// Source: kodustech/kodus-ai#1683, hasura/graphql-engine#6782, open-metadata/OpenMetadata#31120.
//
// Ideal: payload bytes pass through unchanged, also those that jsonb would refuse
// and a JSON library would mend.
//
// Error texts that have to be written into `last_error` come with polling.

import (
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC23EscapedNULAndLoneSurrogatesPassThroughUnchanged(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"json", "text", "bytea"} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
			forzeTable(t, h, column)
			h.Init(t)
			payloads := []string{
				`{"a": "x\u0000y"}`,
				`{"lone": "\ud800", "low": "\udc00", "pair": "\ud83d\ude00"}`,
				"{\"spaces\" :\t[ 1 ,\n2 ] , \"a\":1, \"a\":2}",
				`"\u0041\/\u00e9 é 😀"`,
			}
			for _, p := range payloads {
				h.Exec(t, insertPayload(column), p)
			}
			if column == "bytea" {
				payloads = append(payloads, "\x00\xff\xfe raw\x00")
				h.Exec(t, `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
					values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), $1, 'key')`, []byte(payloads[len(payloads)-1]))
			}
			r := h.Start(t)
			records := k.ConsumeN(t, len(payloads), soon, h.Topic)
			if len(records) != len(payloads) {
				t.Fatalf("%d records, want %d", len(records), len(payloads))
			}
			for i, want := range payloads {
				if got := string(records[i].Value); got != want {
					t.Errorf("value %q, want %q", got, want)
				}
			}
			r.WaitReady(soon)
		})
	}
}

// insertPayload is the statement that writes its argument, a text, into a column of that type.
func insertPayload(column string) string {
	value := "$1::text::" + column
	if column == "bytea" {
		value = "convert_to($1::text, 'UTF8')"
	}
	return `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
		values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), ` + value + `, 'key')`
}
