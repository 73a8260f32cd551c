package cases

// C12 Rare pgoutput message kinds.
// Source: lukashes/outboxx#89.
// Ideal: rows with an enum and a domain column, and rows of a session with a
// replication origin, are delivered like any other. An unknown kind fails loudly
// with its byte and LSN, and never advances the slot.

import (
	"bytes"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC12EnumDomainAndOriginAreDeliveredLikeAnyRow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		k := kafkaserver.Shared(t)
		h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 3, nil))
		h.Exec(t, `create type outbox_status as enum ('pending', 'processing', 'published', 'failed');
			create domain event_name as text check (value <> '');`+outboxTable("status", "outbox_status", "event_type", "event_name"))
		h.Init(t)
		l := newLedger(h)
		h.Exec(t, "select pg_replication_origin_create('elsewhere "+h.Slot+"')")
		t.Cleanup(func() { h.Exec(t, "select pg_replication_origin_drop('elsewhere "+h.Slot+"')") })
		l.write(t, "a", "b")
		l.transaction(t, func(x *txn) {
			x.exec("select pg_replication_origin_session_setup('elsewhere " + h.Slot + "')")
			x.exec("select pg_replication_origin_xact_setup('0/42', now())")
			x.write("a", "b")
		})
		l.transaction(t, func(x *txn) {
			x.write("a")
			x.exec("select pg_replication_origin_session_reset()")
		})
		r := h.Start(t)
		r.WaitReady(readyWithin)
		l.drained(t, 30*time.Second)
		l.judge(t, k.Consume(t, h.Topic), 0)
		stopsClean(t, r)
	})
}

func TestC12UnknownKindHaltsWithItsByteAndPlaceAndConfirmsNothing(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	pg := pgserver.Start(t, pgserver.Options{})
	h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, nil))
	h.Init(t)
	l := newLedger(h)
	// The server of the future: a row with this key comes as a message of kind '!'.
	marker := []byte("key of the future")
	future := newProxy(t, pg.Port(), func(kind byte, body []byte) {
		const head = 25 // XLogData before the message
		if kind == 'd' && len(body) > head && body[0] == 'w' && body[head] == 'I' && bytes.Contains(body, marker) {
			body[head] = '!'
		}
	})
	through := *h
	through.URL = future.through(t, pg.URL(h.Database))
	r := through.Start(t)
	r.WaitReady(readyWithin)
	l.write(t, "a", "b")
	l.drained(t, 30*time.Second)
	slot := watchSlot(t, h)
	l.write(t, string(marker))
	l.write(t, "a", "b")
	reason := r.WaitNotReady(30*time.Second, "0x21")
	contains(t, "/readyz", reason, "LSN", "halted", h.Slot)
	floor := l.floor(2)
	neverPast(t, slot.stop(), floor)
	if code, _ := r.Stop(); code == 1 {
		t.Errorf("the stop of a halted relay exited %d", code)
	}
	neverPast(t, []look{{confirmed: parseLSN(t, h.ReadSlot(t).Confirmed)}}, floor)

	// A relay that understands the message goes on where it stood.
	r = h.Start(t)
	r.WaitReady(readyWithin)
	l.drained(t, 30*time.Second)
	l.judge(t, k.Consume(t, h.Topic), 0)
	stopsClean(t, r)
}
