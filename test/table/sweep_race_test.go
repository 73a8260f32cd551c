package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// requeue sets one settled row pending as an operator does, and answers its event id.
const requeue = `update public.outbox set status = 'pending', processing_at = null, published_at = null, last_error = null, attempts = 0, available_at = null
	where id = (select id from public.outbox where status = $1 order by random() limit 1) returning event_id::text`

// The sweep looks for what the log does not bring while the log brings much: writers
// insert, rows are due later, an operator has published and failed rows published once
// more. Every event comes exactly as often as it was asked for, and never early.
func TestSweepAndLogTogetherDeliverEachEventAsOftenAsItWasAskedFor(t *testing.T) {
	t.Parallel()
	on(t, 3, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		h.Topic = k.Topic(t, 3, map[string]string{"message.timestamp.type": "LogAppendTime"})
		h.Source = "after_publish: mark\nsweep_every: 100ms"
		h.Init(t)
		r := h.Start(t)
		r.WaitReady(soon)
		const writers, each, keys = 4, 250, 40
		var (
			mu   sync.Mutex
			want = map[string]int{}       // by event id
			due  = map[string]time.Time{} // of those that are due later
			end  = make(chan struct{})
		)
		asked := func(id string) {
			mu.Lock()
			defer mu.Unlock()
			want[id]++
		}
		var writing, operating sync.WaitGroup
		for w := range writers {
			conn := h.PG.Conn(t, h.Database)
			writing.Go(func() {
				for i := range each {
					id := eventID(w*each + i + 1)
					key, later := fmt.Sprint("key ", w, " ", i%keys), rand.IntN(10) == 0
					if later {
						key = "later " + id // of a key of its own: it may be passed
					}
					var at time.Time
					err := conn.QueryRow(t.Context(), `insert into public.outbox
						(id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key, available_at)
						values (gen_random_uuid(), $1, 'orders', 'Tested', $2, now(), clock_timestamp(), '{}', $3,
							case when $4 then clock_timestamp() + random() * interval '3 s' end) returning coalesce(available_at, 'epoch')`,
						id, map[bool]string{true: "failed", false: "pending"}[i%50 == 49], key, later && i%50 != 49).Scan(&at)
					switch {
					case err != nil:
						t.Errorf("writer %d: %v", w, err)
						return
					case i%50 == 49:
						continue // the log must not bring it; only the operator asks for it
					}
					asked(id)
					if later {
						mu.Lock()
						due[id] = at
						mu.Unlock()
					}
				}
			})
		}
		for _, status := range []string{"published", "failed"} {
			conn := h.PG.Conn(t, h.Database)
			operating.Go(func() {
				tick := time.NewTicker(25 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
					case <-end:
						return
					}
					var id string
					switch err := conn.QueryRow(context.WithoutCancel(t.Context()), requeue, status).Scan(&id); {
					case err == nil:
						asked(id)
					case !errors.Is(err, pgx.ErrNoRows):
						t.Errorf("operator: %v", err)
						return
					}
				}
			})
		}
		writing.Wait()
		<-time.After(2 * time.Second) // the operator works on beside an idle log
		close(end)
		operating.Wait()
		r.Eventually("every row published", soon, func() error {
			if n := ask(t, h, `select count(*)::text from public.outbox where status <> 'published'`); n != "0" {
				return errors.New(n + " are not")
			}
			return nil
		})
		stop(t, r)

		got := map[string]int{}
		for _, rec := range k.Consume(t, h.Topic) {
			id := oracle.EventID(rec)
			got[id]++
			// The broker's time, in whole milliseconds; all clocks here are one.
			if at, ok := due[id]; ok && rec.Timestamp.Add(time.Millisecond).Before(at) {
				t.Errorf("event %s came at %s, due at %s", id, rec.Timestamp, at)
			}
		}
		again := 0
		for id, n := range want {
			if got[id] != n {
				t.Errorf("event %s came %d times, asked for %d times", id, got[id], n)
			}
			again += n - 1
		}
		if len(got) != len(want) {
			t.Errorf("%d events came, %d were asked for", len(got), len(want))
		}
		if again < 20 || len(due) < 20 {
			t.Errorf("%d requeued, %d due later: the test tests little", again, len(due))
		}
		t.Logf("%d events, %d asked for again, %d due later", len(want), again, len(due))
	})
}
