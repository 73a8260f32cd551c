package table

import (
	"errors"
	"fmt"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/rig"
)

// putAndDelete commits events that are gone when their transaction is over.
func putAndDelete(t testing.TB, h *rig.House, key string, from, last, pad int) {
	t.Helper()
	ctx := t.Context()
	tx, err := h.PG.Conn(t, h.Database).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = tx.Exec(ctx, insertOf[h.Preset], from, last, key, pad); err == nil {
		_, err = tx.Exec(ctx, `delete from public.outbox where id = any (select `+idOf(rowKind[h.Preset])+` from generate_series($1::bigint, $2::bigint) n)`, from, last)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var rowKind = map[string]string{"forze": "7", "basic": "4", "debezium": "4"}

// Behind a poison row wait rows that stay in the table and rows that their writer has
// deleted: the former are found again there, the latter are kept whole. They arrive in
// one order all the same.
func TestDeletedAndKeptRowsBehindAHeldKeyArriveInOneOrder(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"forze", "basic", "debezium"} {
		for _, poison := range []string{"stays", "deleted"} {
			t.Run(preset+"/poison "+poison, func(t *testing.T) {
				t.Parallel()
				on(t, 1, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
					h.Topic = k.Topic(t, 1, map[string]string{"max.message.bytes": fmt.Sprint(limit)})
					h.Preset, h.Kafka = preset, "on_poison: park"
					h.Source = "after_publish: delete\nsweep_every: 500ms"
					h.Init(t)
					r := h.Start(t)
					r.WaitReady(soon)
					reads(t, r, "log") // what is deleted while the table is read comes with the log
					put(t, h, "a", 1, 1, 0)
					if poison == "stays" {
						put(t, h, "a", 2, 2, 2*limit)
					} else {
						putAndDelete(t, h, "a", 2, 2, 2*limit)
					}
					put(t, h, "a", 3, 3, 0)
					putAndDelete(t, h, "a", 4, 4, 0)
					put(t, h, "a", 5, 5, 0)
					putAndDelete(t, h, "a", 6, 6, 0)
					put(t, h, "b", 7, 7, 0)
					if got := numbers(k.ConsumeN(t, 2, soon, h.Topic)); got["a"] != "1" || got["b"] != "7" {
						t.Fatalf("arrived %v", got)
					}
					stop(t, r)
					raise(t, k, h.Topic)
					if out, code := h.Command(t, "parked", "retry", "--all"); code != 0 {
						t.Fatalf("parked retry exited %d: %s", code, out)
					}
					r = h.Start(t)
					r.Eventually("nothing put aside", soon, func() error {
						if n := ask(t, h, `select (select count(*) from walrelay.parked) + (select count(*) from public.outbox) || ''`); n != "0" {
							return errors.New(n + " events are put aside or left")
						}
						return nil
					})
					put(t, h, "a", 8, 8, 0)
					if got := numbers(k.ConsumeN(t, 8, soon, h.Topic)); got["a"] != "1 2 3 4 5 6 8" {
						t.Errorf("arrived %v", got)
					}
					stop(t, r)
				})
			})
		}
	}
}
