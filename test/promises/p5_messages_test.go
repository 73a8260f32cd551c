package promises

// P5 Bytes are not touched: logical messages in all their forms (DESIGN 4.2),
// from the SQL function to the Kafka record.

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func messageHouse(t *testing.T, more string) (*rig.House, *kafkaserver.Server) {
	t.Helper()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
	h.Postgres = "messages: [outbox]" + more
	h.Init(t)
	return h, k
}

// emit emits one message in a transaction of its own and returns its floor.
func emit(t *testing.T, h *rig.House, transactional bool, prefix string, content []byte) event.LSN {
	t.Helper()
	s := newSession(t, h)
	s.do("begin")
	if _, err := s.conn.Exec(context.Background(), `select pg_logical_emit_message($1, $2, $3::bytea)`, transactional, prefix, content); err != nil {
		t.Fatal(err)
	}
	floor := s.where()
	s.do("commit")
	return floor
}

func TestP5MessagesOfEveryFormArriveByteForByte(t *testing.T) {
	t.Parallel()
	h, k := messageHouse(t, "")
	r := h.Start(t)
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	const payload = `{ "n":9007199254740993 , "e":1e400,"n":-0.0, "s":"\ud800\u0000\/" }`
	type want struct{ key, value, kind, header string }
	var wants []want
	var floor event.LSN
	add := func(prefix string, content []byte, w want) {
		floor = emit(t, h, true, prefix, content)
		wants = append(wants, w)
	}
	id := uuid.NewString()
	add("outbox", []byte(`{"event_id":"`+id+`","outbox_route":"orders","ordering_key":"order-1","event_type":"Placed",
		"headers":{"region":"eu-é","Empty":""}, "payload": `+payload+`}`), want{"order-1", payload, "Placed", "eu-é"})
	add("outbox", []byte(`{"route":"orders","key":"order-2","type":"Placed","payload":"text"}`), want{"order-2", `"text"`, "Placed", ""})
	add("outbox/orders", []byte("plain"), want{"", "plain", "", ""})
	add("outbox/orders/order-3", everyByte, want{"order-3", string(everyByte), "", ""})
	add("outbox/orders/a/b c/ü", []byte("\x00\xff"), want{"a/b c/ü", "\x00\xff", "", ""})
	add("outbox/orders/order-4", []byte{}, want{"order-4", "", "", ""})
	for _, foreign := range []string{"OUTBOX/orders/k", "outboxes", "outbox2/orders", "audit", ""} {
		emit(t, h, true, foreign, everyByte)
	}
	drained(t, h, floor)
	records := k.Consume(t, h.Topic)
	if len(records) != len(wants) {
		t.Fatalf("%d records, want %d", len(records), len(wants))
	}
	for i, rec := range records {
		w := wants[i]
		if w.key == "" { // none: the event id stands in
			w.key = header(rec, "forze_event_id")
		}
		got := want{string(rec.Key), string(rec.Value), header(rec, "forze_type"), header(rec, "region")}
		if got != w || rec.Value == nil {
			t.Errorf("message %d arrived as %q, want %q", i, got, w)
		}
		if got, err := uuid.Parse(header(rec, "forze_event_id")); err != nil || i > 0 && got.Version() != 5 {
			t.Errorf("message %d has the event id %q", i, header(rec, "forze_event_id"))
		}
	}
	if got := header(records[0], "forze_event_id"); got != id {
		t.Errorf("the event id is %q, the message brought %q", got, id)
	}
	if n := r.Metric("walrelay_events_published_total"); int(n) != len(wants) {
		t.Errorf("%v events counted as published, want %d", n, len(wants))
	}
}

func TestP5NontransactionalMessagesAreCountedOrPublishedAsConfigured(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		t.Run(fmt.Sprint(allowed), func(t *testing.T) {
			t.Parallel()
			h, k := messageHouse(t, fmt.Sprintf("\nmessages_allow_nontransactional: %t", allowed))
			r := h.Start(t)
			s := newSession(t, h)
			s.do("begin", `select pg_logical_emit_message(false, 'outbox/orders/k', 'at once')`, "rollback",
				`select pg_logical_emit_message(false, 'outbox', '{"route":"orders","key":"k","payload":2}')`,
				"begin", `select pg_logical_emit_message(true, 'outbox/orders/k', 'with its commit')`, "commit")
			drained(t, h, s.floor)
			var got []string
			for _, rec := range k.Consume(t, h.Topic) {
				got = append(got, string(rec.Value))
			}
			want, ignored := []string{"with its commit"}, 2.0
			if allowed {
				want, ignored = []string{"at once", "2", "with its commit"}, 0
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("arrived %q, want %q", got, want)
			}
			if n := r.Metric("walrelay_events_ignored_total", "non_transactional"); n != ignored {
				t.Errorf("%v messages are counted as ignored, want %v", n, ignored)
			}
		})
	}
}

// ids of the records by their values.
func ids(records []*kgo.Record) map[string][]string {
	all := map[string][]string{}
	for _, rec := range records {
		all[string(rec.Value)] = append(all[string(rec.Value)], header(rec, "forze_event_id"))
	}
	return all
}
