package cases

// C18 Non-transactional message: escapes rollback, overtakes its transaction.
// Source: DBZ-2363 (debezium/debezium#2936), agentultra/postgresql-replicant#28.
// Ideal: ignored and counted by default. If accepted, delivered once and marked;
// the decoder never assumes an open transaction; the slot advances past one only
// after Kafka's acknowledgement.

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const (
	strayID = "0198f3a0-0000-7000-8000-00000000000"
	stray   = `{"event_id": "` + strayID + `%d", "outbox_route": "orders", "event_type": "Stray", "ordering_key": "a", "payload": {"stray": %[1]d}}`
)

// strays writes three non-transactional messages: in a transaction that is
// rolled back, in one that commits, and alone.
func strays(t *testing.T, l *ledger) {
	t.Helper()
	emit := func(n int) string {
		return fmt.Sprintf("select pg_logical_emit_message(false, 'outbox', '"+stray+"')", n)
	}
	l.attempt(t, func(x *txn) bool {
		x.write("a")
		x.exec(emit(1))
		return false
	})
	l.transaction(t, func(x *txn) {
		x.write("a")
		x.exec(emit(2))
		x.write("a")
	})
	l.h.Exec(t, emit(3))
	l.write(t, "a")
}

func TestC18NonTransactionalMessageIsIgnoredAndCounted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		k := kafkaserver.Shared(t)
		h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 3, nil))
		h.Postgres = "messages: [outbox]"
		h.Init(t)
		l := newLedger(h)
		strays(t, l) // with the relay stopped
		r := h.Start(t)
		r.WaitReady(readyWithin)
		strays(t, l) // and running
		l.drained(t, 30*time.Second)
		l.judge(t, k.Consume(t, h.Topic), 0) // a stray would be a phantom
		if n := r.Metric("walrelay_events_ignored_total", `reason="non_transactional"`); n != 6 {
			t.Errorf("%v non-transactional messages counted, want 6", n)
		}
		stopsClean(t, r)
	})
}

func TestC18AcceptedNonTransactionalMessageComesOnceAndIsConfirmedLast(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{})
	type scene struct {
		h *rig.House
		l *ledger
		r *rig.Relay
	}
	var scenes []*scene
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		pg := pgserver.Start(t, pgserver.Options{Version: v, Settings: map[string]string{"wal_sender_timeout": "3s"}})
		s := &scene{h: rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 1, nil))}
		s.h.Postgres = "messages: {prefixes: [outbox], allow_nontransactional: true}"
		s.h.Init(t)
		s.l = newLedger(s.h)
		s.r = s.h.Start(t)
		s.r.WaitReady(readyWithin)
		s.l.write(t, "a")
		s.l.drained(t, 30*time.Second)
		scenes = append(scenes, s)
	}
	// S: one alone, with the broker paused, and keepalives that ask.
	k.Pause(t)
	for _, s := range scenes {
		before := s.h.ReadSlot(t)
		s.h.Exec(t, fmt.Sprintf("select pg_logical_emit_message(false, 'outbox', '"+stray+"')", 4))
		s.h.Exec(t, "create table busy as select repeat('x', 1000) from generate_series(1, 5000)")
		slot := watchSlot(t, s.h)
		began := time.Now()
		rig.Eventually(t, "two timeouts", 20*time.Second, func() error {
			if time.Since(began) < 6*time.Second {
				return errNothingYet
			}
			return nil
		})
		// It was written right behind what is confirmed now.
		for _, l := range slot.stop() {
			if l.confirmed > parseLSN(t, before.Confirmed)+512 {
				t.Errorf("%s: confirmed %s went past an unacknowledged message, it was %s before it", s.h.PG.Version(), l.confirmed, before.Confirmed)
				break
			}
		}
	}
	k.Continue(t)
	for _, s := range scenes {
		strays(t, s.l)
		s.l.drained(t, 60*time.Second)
		var rows, messages []*kgo.Record
		for _, rec := range k.Consume(t, s.h.Topic) {
			if id := oracle.EventID(rec); len(id) == len(strayID)+1 && id[:len(strayID)] == strayID {
				messages = append(messages, rec)
			} else {
				rows = append(rows, rec)
			}
		}
		s.l.judge(t, rows, 0)
		seen := map[string]int{}
		for _, rec := range messages {
			seen[string(rec.Value)]++
		}
		for n := 1; n <= 4; n++ {
			if value := fmt.Sprintf(`{"stray": %d}`, n); seen[value] != 1 {
				t.Errorf("%s: message %s came %d times, want once", s.h.PG.Version(), value, seen[value])
			}
		}
		for _, rec := range messages {
			marked := false
			for _, header := range rec.Headers {
				marked = marked || header.Key == "walrelay_transactional" && string(header.Value) == "false"
			}
			if !marked {
				t.Errorf("%s: message %s has no header that says that it is non-transactional: %v", s.h.PG.Version(), rec.Value, rec.Headers)
			}
		}
		stopsClean(t, s.r)
	}
}
