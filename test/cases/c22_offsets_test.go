package cases

// C22 Offsets that are not `+HH:MM`
//
// Source: drasi-project/drasi-core#458.
//
// Ideal: whatever time zone the role or the database has, and so whatever shape
// of offset the server prints (`+00`, `+05:30`, `+05:53:28`), the same instant is
// published; nothing is lost.
//
// Two things see to it, each by itself: the relay asks for UTC on its connection,
// and reads whatever offset comes.

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC22TheSameInstantIsPublishedInEveryTimeZone(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	pg := pgserver.Shared(t, pgserver.V16)
	// Each with the offset that it prints for 1900, to prove that the shapes are met.
	zones := []struct{ name, printed string }{
		{"UTC", "+00"}, {"Asia/Kolkata", "+05:21:10"}, {"Asia/Kathmandu", "+05:41:16"}, {"Europe/Amsterdam", ""},
	}
	topics := map[string]string{}
	for i, z := range zones {
		h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 1, nil))
		h.Init(t)
		topics[z.name] = h.Topic
		if i%2 == 0 {
			h.Exec(t, fmt.Sprintf("alter database %s set timezone = '%s'", h.Database, z.name))
		} else {
			role, password := pg.NewRole(t, "superuser replication")
			h.Exec(t, fmt.Sprintf("alter role %s set timezone = '%s'", role, z.name))
			h.URL = pg.URLAs(role, password, h.Database)
		}
		for n, instant := range []string{"1900-01-01 12:00:00.000001+00", "1940-05-16 01:40:00+00", "2024-07-01 23:59:59.5+00"} {
			h.Exec(t, `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
				values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', $1::text::timestamptz, to_jsonb($2::int), 'key')`, instant, n)
		}
		if got := printedIn(t, h, z.name); !strings.HasSuffix(got, z.printed) {
			t.Errorf("in %s the server prints %s, want the offset %s: the shape is not met", z.name, got, z.printed)
		}
		h.Start(t)
	}
	for zone, topic := range topics {
		records := k.ConsumeN(t, 3, soon, topic)
		var got []string
		for _, rec := range records {
			got = append(got, occurredAt(rec))
		}
		want := "1900-01-01T12:00:00.000001+00:00 1940-05-16T01:40:00+00:00 2024-07-01T23:59:59.500000+00:00"
		if strings.Join(got, " ") != want {
			t.Errorf("%s: published %v, want %s", zone, got, want)
		}
	}
}

func occurredAt(r *kgo.Record) string {
	s, _ := header(r, "forze_occurred_at")
	return s
}

// printedIn is how the server prints the oldest row in a time zone.
func printedIn(t *testing.T, h *rig.House, zone string) string {
	t.Helper()
	conn := h.PG.Conn(t, h.Database)
	var s string
	if _, err := conn.Exec(context.Background(), fmt.Sprintf("set timezone = '%s'", zone)); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(context.Background(), "select min(occurred_at)::text from outbox").Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}
