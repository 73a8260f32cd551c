package badinput

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// gapThenNewSlot expects the halt of a relay that starts on a lost slot, takes
// the way out that it names, and sees events flow again.
func gapThenNewSlot(t *testing.T, k *kafkaserver.Server, h *rig.House, published int, texts ...string) {
	t.Helper()
	out, code := h.Command(t, "run", "--exit-on-halt")
	if code != exitGap {
		t.Errorf("run --exit-on-halt exited %d, want %d", code, exitGap)
	}
	texts = append(texts, h.Slot, "walrelay init --new-slot")
	contains(t, "run --exit-on-halt", out, texts...)
	r := h.Start(t)
	r.Eventually("/readyz with the whole story", soon, func() error {
		code, body, err := r.Get("/readyz")
		for _, text := range texts {
			if err != nil || code != 503 || !strings.Contains(body, text) {
				return errors.Join(err, fmt.Errorf("%d without %q: %s", code, text, body))
			}
		}
		return nil
	})
	r.Stop()
	if n := len(k.Consume(t, h.Topic)); n != published {
		t.Errorf("%d records while the gap stands, want the %d from before it", n, published)
	}
	if out, code := h.Command(t, "init", "--new-slot"); code != 0 {
		t.Fatalf("init --new-slot exited %d: %s", code, out)
	}
	r = h.Start(t)
	r.WaitReady(soon)
	confirmedPast(t, h, commits(t, h, row("orders", "a", 9)))
	r.Stop()
	if n := len(k.Consume(t, h.Topic)); n != published+1 {
		t.Errorf("%d records after the new beginning, want %d", n, published+1)
	}
}

func TestSlotThatWasDroppedIsAGapAndIsNotMadeAnewInSilence(t *testing.T) {
	t.Parallel()
	for _, version := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pgserver.Shared(t, version), k.Brokers(), k.Topic(t, 1, nil))
			h.Init(t)
			r := h.Start(t)
			confirmedPast(t, h, commits(t, h, row("orders", "a", 1)))
			r.Stop()
			h.Exec(t, `select pg_drop_replication_slot($1)`, h.Slot)
			commits(t, h, row("orders", "a", 2))
			if out, code := h.Command(t, "init"); code != exitGap {
				t.Errorf("init beside a lost slot exited %d, want %d: %s", code, exitGap, out)
			}
			gapThenNewSlot(t, k, h, 1, "is gone")
		})
	}
}

func TestSlotThatTheServerGaveUpIsAGapThatNamesTheLastPosition(t *testing.T) {
	t.Parallel()
	for _, version := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			pg := pgserver.Start(t, pgserver.Options{Version: version, Settings: map[string]string{
				"max_slot_wal_keep_size": "16MB", "max_wal_size": "32MB", "min_wal_size": "32MB",
			}})
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 1, nil))
			h.Init(t)
			r := h.Start(t)
			confirmedPast(t, h, commits(t, h, row("orders", "a", 1)))
			r.Stop()
			confirmed := h.ReadSlot(t).Confirmed
			commits(t, h, row("orders", "a", 2))
			h.Exec(t, `create table bulk (x text)`)
			rig.Eventually(t, "the slot's invalidation", soon, func() error {
				h.Exec(t, `insert into bulk select repeat(md5(g::text), 30) from generate_series(1, 20000) g`)
				h.Exec(t, `checkpoint`)
				if s := h.ReadSlot(t); s.WALStatus != "lost" {
					return fmt.Errorf("wal_status is %s", s.WALStatus)
				}
				return nil
			})
			gapThenNewSlot(t, k, h, 1, "lost", confirmed, "max_slot_wal_keep_size")
		})
	}
}

// TestDroppedPublicationStopsBeforeRowsArePassedOver: on Postgres 18 the server
// then says nothing and the position would run on past rows that it hides.
func TestDroppedPublicationStopsBeforeRowsArePassedOver(t *testing.T) {
	t.Parallel()
	for _, version := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(version.String(), func(t *testing.T) {
			t.Parallel()
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pgserver.Start(t, pgserver.Options{Version: version}), k.Brokers(), k.Topic(t, 1, nil))
			h.Init(t)
			r := h.Start(t)
			confirmedPast(t, h, commits(t, h, row("orders", "a", 1)))
			h.Exec(t, `drop publication `+h.Publication)
			hidden := commits(t, h, row("orders", "a", 2))
			contains(t, "/readyz", r.WaitNotReady(soon, "publication"), h.Publication)
			// The log of others goes on: nothing of it may carry the position past the row.
			h.Exec(t, `create table bulk (x text)`)
			h.Exec(t, `insert into bulk select repeat(md5(g::text), 30) from generate_series(1, 5000) g`)
			h.Exec(t, `create publication `+h.Publication+` for table public.outbox with (publish = 'insert')`)
			contains(t, "/readyz", r.WaitNotReady(soon, h.Publication), "walrelay ")
			r.Stop()
			at, err := event.ParseLSN(h.ReadSlot(t).Confirmed)
			if err != nil {
				t.Fatal(err)
			}
			if at >= hidden {
				t.Errorf("the slot is confirmed up to %s, past the hidden row at %s", at, hidden)
			}
			if n := len(k.Consume(t, h.Topic)); n != 1 {
				t.Errorf("%d records, want 1", n)
			}
			r = h.Start(t)
			r.Eventually("the gap to stand after a restart too", soon, func() error {
				if code, body, err := r.Get("/readyz"); err != nil || code == 200 {
					return errors.Join(err, fmt.Errorf("%d %s", code, body))
				}
				return nil
			})
			r.Stop()
		})
	}
}
