package cases

// C17 Transactional logical message sent twice after restart.
// Source: debezium/dbz#2004, debezium/debezium#7492 and #7653.
// Ideal: no duplicates after clean stops, in all orders; a message's identity
// does not rest on the LSN alone.

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// emit writes a transactional message with an id of its own and notes it.
func (x *txn) emit(key string) {
	x.t.Helper()
	c := x.expect(uuid.NewString(), key)
	content, err := json.Marshal(map[string]any{
		"event_id": c.EventID, "outbox_route": "orders", "event_type": "Tested", "ordering_key": key, "payload": json.RawMessage(c.Value),
	})
	if err != nil {
		x.t.Fatal(err)
	}
	c.Value = nil // compared by number instead: Go prints JSON without spaces
	x.exec("select pg_logical_emit_message(true, 'outbox', $1)", string(content))
}

func TestC17MessageBeforeACleanStopNeverComesAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		k := kafkaserver.Shared(t)
		h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 3, nil))
		h.Postgres = "messages: [outbox]"
		h.Init(t)
		l := newLedger(h)
		orders := []struct {
			name  string
			write func(*txn)
		}{
			{"message, message, row", func(x *txn) { x.emit("a"); x.emit("a"); x.write("a") }},
			{"one message alone", func(x *txn) { x.emit("a") }},
			{"two messages alone", func(x *txn) { x.emit("a"); x.emit("b") }},
			{"row, message", func(x *txn) { x.write("b"); x.emit("b") }},
			{"message, row, message", func(x *txn) { x.emit("a"); x.write("a"); x.emit("a") }},
		}
		for _, o := range orders {
			r := h.Start(t)
			r.WaitReady(readyWithin)
			// Twice: the first is confirmed at once, the second waits for its turn.
			l.transaction(t, o.write)
			l.transaction(t, o.write)
			// The stop comes right after delivery: no position is confirmed on a timer.
			k.ConsumeN(t, len(l.committed()), 30*time.Second, h.Topic)
			stopsClean(t, r)
			if records := k.Consume(t, h.Topic); len(records) != len(l.committed()) {
				t.Errorf("after the order %q and a clean stop: %d records, want %d", o.name, len(records), len(l.committed()))
			}
		}
		r := h.Start(t)
		r.WaitReady(readyWithin)
		l.write(t, "last")
		l.drained(t, 30*time.Second)
		l.judge(t, k.Consume(t, h.Topic), 0)
	})
}

func TestC17MessageWithoutAnIDHasTheSameOneWhoeverReadsIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		k := kafkaserver.Shared(t)
		h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 1, nil))
		h.Postgres = "messages: [outbox]"
		h.Init(t)
		// A second slot reads the same log: what it delivers is a redelivery.
		again := *h
		again.Topic, again.Slot, again.Postgres = k.Topic(t, 1, nil), h.Slot[:min(len(h.Slot), 60)]+"_2", h.Postgres+"\nbookkeeping: again"
		again.Init(t)
		h.Exec(t, `do $$ begin
			perform pg_logical_emit_message(true, 'outbox/orders/a', 'one');
			perform pg_logical_emit_message(true, 'outbox/orders/a', 'one');
			perform pg_logical_emit_message(true, 'outbox/orders/a', 'two');
		end $$`)
		h.Exec(t, `select pg_logical_emit_message(true, 'outbox/orders/a', 'one')`)
		var ids [2][]string
		for i, house := range []*rig.House{h, &again} {
			r := house.Start(t)
			for _, rec := range k.ConsumeN(t, 4, 60*time.Second, house.Topic) {
				ids[i] = append(ids[i], oracle.EventID(rec))
			}
			stopsClean(t, r)
		}
		if len(ids[0]) != 4 || fmt.Sprint(ids[0]) != fmt.Sprint(ids[1]) {
			t.Errorf("two readers saw the ids\n%v\n%v\nwant the same four", ids[0], ids[1])
		}
		distinct := map[string]bool{}
		for _, id := range ids[0] {
			distinct[id] = true
		}
		if len(distinct) != 4 || distinct[""] {
			t.Errorf("the ids of four messages are %v, want four different ones", ids[0])
		}
	})
}
