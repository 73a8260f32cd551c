package table

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/rig"
)

// What is written between init and the first start is in the log and, but for messages and rows that
// their own transaction deleted, in the table. The catch-up leaves all of it to the log.
func TestEventsBetweenInitAndTheFirstStartKeepTheirOrder(t *testing.T) {
	t.Parallel()
	on(t, 1, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		h.Postgres, h.Source = "messages: [outbox]", "after_publish: mark"
		h.Init(t)
		const events = 9
		for n := 1; n <= events; n++ {
			row := fmt.Sprintf(`insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
				values ('00000000-0000-0000-0000-00000000000%[1]d', gen_random_uuid(), 'r', 'T', 'pending', now(), now(), '%[1]d', 'k')`, n)
			switch n % 3 {
			case 0:
				h.Exec(t, row+fmt.Sprintf(`; delete from public.outbox where payload = '%d'`, n))
			case 1:
				h.Exec(t, fmt.Sprintf(`select pg_logical_emit_message(true, 'outbox', '{"outbox_route": "r", "event_type": "T", "ordering_key": "k", "payload": %d}')`, n))
			default:
				h.Exec(t, row)
			}
		}
		r := h.Start(t)
		var got []string
		for _, rec := range k.ConsumeN(t, events, soon, h.Topic) {
			got = append(got, string(rec.Value))
		}
		if want := "1 2 3 4 5 6 7 8 9"; strings.Join(got, " ") != want {
			t.Errorf("published in the order %v", got)
		}
		states(t, h, map[string]int{"published": 3})
		stop(t, r)
	})
}

// A relay that dies while it looks ahead leaves its connection to the server, for as long as that does not
// notice. Who takes its place does not mistake it for a relay that follows the log.
func TestSlotThatIsInUseBeforeTheCatchUpIsWaitedFor(t *testing.T) {
	t.Parallel()
	on(t, 1, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		h.Source = "after_publish: mark"
		h.Init(t)
		h.Insert(t, "r", "k") // older than the slot
		if out, code := h.Command(t, "init", "--new-slot", "--source", "orders"); code != 0 {
			t.Fatalf("init --new-slot exited %d:\n%s", code, out)
		}
		h.Insert(t, "r", "k", "k")
		dead, err := pgconn.Connect(t.Context(), h.PG.URL(h.Database)+"&replication=database")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = dead.Close(context.Background()) }()
		if err := pglogrepl.StartReplication(t.Context(), dead, h.Slot, 0, pglogrepl.StartReplicationOptions{
			PluginArgs: []string{"proto_version '1'", fmt.Sprintf("publication_names '%s'", h.Publication)},
		}); err != nil {
			t.Fatal(err)
		}
		r := h.Start(t)
		r.Eventually("standing by", soon, func() error {
			st, err := r.Status()
			if err == nil && st.Sources[0].State != event.StateStandby {
				err = fmt.Errorf("it is %s", st.Sources[0].State)
			}
			return err
		})
		if records := k.Consume(t, h.Topic); len(records) > 0 {
			t.Errorf("%d records before the slot was free", len(records))
		}
		_ = dead.Close(context.Background())
		var got []string
		for _, rec := range k.ConsumeN(t, 3, soon, h.Topic) {
			got = append(got, string(rec.Value))
		}
		if want := `{"n": 1, "key": "k"} {"n": 1, "key": "k"} {"n": 2, "key": "k"}`; strings.Join(got, " ") != want {
			t.Errorf("published in the order %v", got)
		}
		states(t, h, map[string]int{"published": 3})
		stop(t, r)
	})
}
