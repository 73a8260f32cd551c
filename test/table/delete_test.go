package table

import (
	"errors"
	"fmt"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
	"github.com/walrelay/walrelay/test/workload"
)

// written has writers at work on the house's outbox, in many ways, until so many
// transactions are through, and answers what they committed.
func written(t *testing.T, h *rig.House, transactions int, deleted float64) []oracle.Commit {
	t.Helper()
	return workload.Run(t.Context(), t, workload.Options{
		DSN: h.PG.URL(h.Database), Table: "public.outbox", Schema: workload.Schema(h.Preset),
		Writers: 4, Keys: 20, MaxRows: 20, Transactions: transactions, DeleteShare: deleted,
	})
}

// reads waits until the relay reads its source so: log, poll, catch_up.
func reads(t *testing.T, r *rig.Relay, gear string) {
	t.Helper()
	r.Eventually("gear "+gear, soon, func() error {
		if r.Metric("walrelay_source_gear", `state="`+gear+`"`) != 1 {
			return errors.New("it reads in another way")
		}
		return nil
	})
}

// left waits until the outbox holds exactly so many rows.
func left(t *testing.T, h *rig.House, want int) {
	t.Helper()
	rig.Eventually(t, fmt.Sprintf("%d rows", want), soon, func() error {
		if n := ask(t, h, `select count(*)::text from public.outbox`); n != fmt.Sprint(want) {
			return errors.New(n + " rows are left")
		}
		return nil
	})
}

// Delivered rows go, in every preset, whether the log brings them or a claim does; rows
// that their writers had deleted already come once all the same where the log brings them.
func TestDeliveredRowsAreDeleted(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"forze", "basic", "debezium"} {
		for _, gear := range []string{"log", "poll"} {
			t.Run(preset+"/"+gear, func(t *testing.T) {
				t.Parallel()
				on(t, 3, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
					h.Preset, h.Postgres = preset, "capture: "+gear
					h.Source = "after_publish: delete\nsweep_every: 500ms\npoll: {interval: 100ms}"
					h.Init(t)
					deleted := 0.3
					if gear == "poll" {
						deleted = 0 // nobody can see such a row
					}
					r := h.Start(t)
					reads(t, r, gear)
					all := written(t, h, 100, deleted)
					left(t, h, 0)
					arrived(t, h, k, len(all))
					stop(t, r)
					inOrder(t, h, k, all, gear == "log")
				})
			})
		}
	}
}

// inOrder holds what arrived against what was committed. The order of a table is
// that of its times and ids; those of the writers are not in the order of commits.
func inOrder(t *testing.T, h *rig.House, k *kafkaserver.Server, all []oracle.Commit, log bool) {
	t.Helper()
	v := oracle.Check(all, k.Consume(t, h.Topic))
	if !log {
		v.Inversions = 0
	}
	if !v.Clean() {
		t.Errorf("%s", v)
	}
}

// An outbox whose rows are deleted by the transaction that writes them, with marks: no
// mark ever hits anything, the position advances all the same, and a relay that was
// killed finds no row to look up and repeats what it had not confirmed, losing nothing.
func TestRowsThatTheirWritersDeleteAreDeliveredAndHoldNothingUp(t *testing.T) {
	t.Parallel()
	for _, preset := range []string{"forze", "basic", "debezium"} {
		for _, after := range []string{"mark", "delete"} {
			if preset == "debezium" && after == "mark" {
				continue // its rows cannot say so
			}
			t.Run(preset+"/"+after, func(t *testing.T) {
				t.Parallel()
				on(t, 3, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
					h.Preset, h.Source = preset, "after_publish: "+after+"\nsweep_every: 500ms"
					h.Init(t)
					r := h.Start(t)
					reads(t, r, "log")
					all := written(t, h, 50, 1)
					end := logEnd(t, h)
					all = append(all, written(t, h, 5, 1)...)
					arrived(t, h, k, len(all))
					confirmed(t, h, end)
					more := written(t, h, 50, 1)
					r.Kill()
					r = h.Start(t)
					r.WaitReady(soon)
					all = append(all, more...)
					end = logEnd(t, h)
					all = append(all, written(t, h, 20, 1)...)
					arrived(t, h, k, len(all))
					confirmed(t, h, end)
					if n := r.Metric("walrelay_outbox_rows"); n != 0 {
						t.Errorf("%v rows are counted as owed, the table is empty", n)
					}
					stop(t, r)
					oracle.Require(t, all, k.Consume(t, h.Topic), len(more))
				})
			})
		}
	}
}

// arrived waits until so many events are in the topic, doubled ones aside.
func arrived(t *testing.T, h *rig.House, k *kafkaserver.Server, want int) {
	t.Helper()
	rig.Eventually(t, fmt.Sprintf("%d events", want), soon, func() error {
		ids := map[string]bool{}
		for _, rec := range k.Consume(t, h.Topic) {
			ids[oracle.EventID(rec)] = true
		}
		if len(ids) != want {
			return fmt.Errorf("%d", len(ids))
		}
		return nil
	})
}

// logEnd is where the log ends now.
func logEnd(t *testing.T, h *rig.House) string {
	t.Helper()
	return ask(t, h, `select pg_current_wal_insert_lsn()::text`)
}

// confirmed waits until the slot is confirmed beyond a position behind which there
// were further events: an idle relay follows the log of others in strides.
func confirmed(t *testing.T, h *rig.House, end string) {
	t.Helper()
	rig.Eventually(t, "the slot at "+end, soon, func() error {
		at := ask(t, h, `select coalesce(confirmed_flush_lsn::text, '') from pg_replication_slots where slot_name = $1`, h.Slot)
		if ask(t, h, `select ($1::pg_lsn >= $2::pg_lsn)::text`, at, end) != "true" {
			return errors.New("it is at " + at)
		}
		return nil
	})
}
