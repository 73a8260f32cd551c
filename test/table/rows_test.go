package table

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// insertOf is the statement that writes events $1 to $2 of key $3 with $4 further
// bytes of payload, by preset. The number of an event is in its id and its payload; ids
// ascend as an application's do, so that the order of the table is the order of writing.
var insertOf = map[string]string{
	"forze": `insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
		select ` + idOf("7") + `, ` + idOf("4") + `, 'orders', 'Tested', 'pending', now(), clock_timestamp(), jsonb_build_object('n', n, 'pad', repeat('x', $4)), $3
		from generate_series($1::bigint, $2::bigint) as n order by n`,
	"basic": `insert into public.outbox (id, aggregate_type, aggregate_id, event_type, payload)
		select ` + idOf("4") + `, 'orders', $3, 'Tested', jsonb_build_object('n', n, 'pad', repeat('x', $4))
		from generate_series($1::bigint, $2::bigint) as n order by n`,
	"debezium": `insert into public.outbox (id, aggregatetype, aggregateid, type, payload, timestamp)
		select ` + idOf("4") + `, 'orders', $3, 'Tested', jsonb_build_object('n', n, 'pad', repeat('x', $4)), clock_timestamp()
		from generate_series($1::bigint, $2::bigint) as n order by n`,
}

// idOf makes an id of a number; kind tells row ids and event ids apart.
func idOf(kind string) string {
	return `('00000000-0000-` + kind + `000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
}

// eventID is the event id of a number, for the oracle.
func eventID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// put commits the events from to last of a key in one transaction.
func put(t testing.TB, h *rig.House, key string, from, last, pad int) {
	t.Helper()
	h.Exec(t, insertOf[h.Preset], from, last, key, pad)
}

// ask asks the house's database for one text.
func ask(t testing.TB, h *rig.House, sql string, args ...any) string {
	t.Helper()
	answer, err := answer(t, h, sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func answer(t testing.TB, h *rig.House, sql string, args ...any) (answer string, err error) {
	conn, err := pgx.Connect(t.Context(), h.PG.URL(h.Database))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(t.Context()) }()
	err = conn.QueryRow(t.Context(), sql, args...).Scan(&answer)
	return answer, err
}

// numbers are the payloads' n of each key, in the order of arrival.
func numbers(records []*kgo.Record) map[string]string {
	byKey := map[string]string{}
	for _, rec := range records {
		var payload struct{ N int }
		_ = json.Unmarshal(rec.Value, &payload)
		byKey[string(rec.Key)] = strings.TrimSpace(fmt.Sprintf("%s %d", byKey[string(rec.Key)], payload.N))
	}
	return byKey
}

// commits are events for the oracle: those numbered from 1 to n, of the key that of names.
func commits(n int, of func(n int) string) []oracle.Commit {
	list := make([]oracle.Commit, n)
	for i := range list {
		list[i] = oracle.Commit{EventID: eventID(i + 1), Route: "orders", Key: of(i + 1), Seq: int64(i + 1)}
	}
	return list
}
