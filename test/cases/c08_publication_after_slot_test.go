package cases

// C08 Publication made after the slot.
// Source: zalando/postgres-operator#2085 and #2091, DBZ-1684.
// Ideal: set-up makes the publication first. Where somebody made the slot first,
// the relay says "exists now, did not when that row was written", with the remedy;
// attempts are bounded, it is not ready, and the slot is not dropped in silence.

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC08SetUpMakesThePublicationBeforeTheSlot(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	// A server of its own: a transaction of another test would hold catalog_xmin back.
	h := rig.NewHouse(t, pgserver.Start(t, pgserver.Options{Version: pgserver.V18}), k.Brokers(), "unused")
	out, code := h.Command(t, "init", "--print")
	script := strings.ToLower(out)
	publication, slot := strings.Index(script, "create publication"), strings.Index(script, "pg_create_logical_replication_slot")
	if code != 0 || publication < 0 || slot < publication {
		t.Errorf("init --print exited %d, with the publication at byte %d and the slot at byte %d:\n%s", code, publication, slot, out)
	}
	h.Init(t)
	// The log's own order: the catalog row of the publication is older than the slot.
	var first bool
	err := h.PG.Conn(t, h.Database).QueryRow(t.Context(), `
		select p.xmin::text::bigint < s.catalog_xmin::text::bigint
		from pg_publication p, pg_replication_slots s where pubname = $1 and slot_name = $2`, h.Publication, h.Slot).Scan(&first)
	if err != nil || !first {
		t.Errorf("the publication is not older than the slot (%v)", err)
	}
}

func TestC08PublicationYoungerThanTheSlotIsNamedAndNothingIsDropped(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		pg := pgserver.Start(t, pgserver.Options{Version: v})
		k := kafkaserver.Shared(t)
		h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, nil))
		// By hand, in the wrong order: table, slot, row, publication.
		h.Init(t)
		h.Exec(t, "drop publication "+h.Publication)
		h.Exec(t, "select pg_drop_replication_slot('"+h.Slot+"')")
		h.Exec(t, "drop schema walrelay cascade")
		h.Exec(t, "select pg_create_logical_replication_slot('"+h.Slot+"', 'pgoutput')")
		l := newLedger(h)
		l.write(t, "a")
		h.Exec(t, "create publication "+h.Publication+" for table public.outbox with (publish = 'insert')")
		h.Init(t) // finds table, publication and slot, and makes its own schema
		before := h.ReadSlot(t)

		slot := watchSlot(t, h)
		r := h.Start(t)
		reason := r.WaitNotReady(30*time.Second, h.Publication)
		contains(t, "/readyz", reason, "did not exist when", "init --new-slot")
		// Bounded: within 10 s the row is asked for again once at most.
		since := time.Now()
		attempts := func() int { return strings.Count(pg.Log(), `START_REPLICATION SLOT "`+h.Slot+`"`) }
		began := attempts()
		rig.Eventually(t, "10 s of quiet", 15*time.Second, func() error {
			if time.Since(since) < 10*time.Second {
				return errNothingYet
			}
			return nil
		})
		if n := attempts() - began; n > 6 { // a line and its statement for each command
			t.Errorf("%d lines of attempts in 10 s", n)
		}
		r.WaitNotReady(5*time.Second, h.Publication)
		neverPast(t, slot.stop(), l.floor(0))
		if after := h.ReadSlot(t); after.Confirmed != before.Confirmed {
			t.Errorf("the slot was at %s and is at %s", before.Confirmed, after.Confirmed)
		}
		if records := k.Consume(t, h.Topic); len(records) != 0 {
			t.Errorf("%d records came", len(records))
		}
		r.Stop()

		// The remedy it gave. The row is the operator's to publish; later ones flow.
		if out, code := h.Command(t, "init", "--new-slot"); code != 0 {
			t.Fatalf("init --new-slot exited %d: %s", code, out)
		}
		l = newLedger(h)
		r = h.Start(t)
		r.WaitReady(readyWithin)
		l.write(t, "a")
		l.drained(t, 30*time.Second)
		l.judge(t, k.Consume(t, h.Topic), 0)
		stopsClean(t, r)
	}, pgserver.Versions...)
}
