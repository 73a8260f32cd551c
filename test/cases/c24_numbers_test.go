package cases

// C24 Numbers inside JSON
//
// Source: pingcap/tiflow#12064, DBZ-5475, duckdb/duckdb#15038.
//
// Ideal: the Kafka value is `payload::text`, byte for byte; nothing is read into
// a float and printed again.

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC24EveryNumberArrivesAsTheServerPrintsIt(t *testing.T) {
	t.Parallel()
	payloads := []string{
		`{"id": 9007199254740993}`,
		`{"id": 12345678901234567890}`,
		`{"d": 0.123456789012345678901234567890}`,
		`{"big": 1e400}`,
		`{"small": 1e-400}`,
		`{"zero": -0.0, "exp": 1E2, "trail": 1.10000}`,
		`{"dup": 1, "dup": 2}`,
		`{"z":1,"a" : 2,"mm":  [1,2 , 3]}`,
		`[` + strings.Repeat("99999999999999999999.000000000000000000001,", 100) + `1]`,
		`18446744073709551616`,
	}
	for _, column := range []string{"jsonb", "json", "text"} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V17), k.Brokers(), k.Topic(t, 1, nil))
			forzeTable(t, h, column)
			h.Init(t)
			for _, p := range payloads {
				h.Exec(t, fmt.Sprintf(`insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
					values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', clock_timestamp(), $1::text::%s, 'key')`, column), p)
			}
			h.Start(t)
			records := byEventID(t, k.ConsumeN(t, len(payloads), soon, h.Topic))
			rows, err := h.PG.Conn(t, h.Database).Query(context.Background(), `select event_id::text, payload::text from outbox`)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			n := 0
			for rows.Next() {
				var id, want string
				if err := rows.Scan(&id, &want); err != nil {
					t.Fatal(err)
				}
				n++
				switch rec := records[id]; {
				case rec == nil:
					t.Errorf("the event with payload %s did not arrive", want)
				case string(rec.Value) != want:
					t.Errorf("value %s, want %s", rec.Value, want)
				}
			}
			if n != len(payloads) || len(records) != n {
				t.Errorf("%d rows and %d records, want %d of both", n, len(records), len(payloads))
			}
		})
	}
}
