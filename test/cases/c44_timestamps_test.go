package cases

// C44 Record timestamp out of the broker's window
//
// Source: elastic/docs-content#2587, apache/kafka#13709, tulios/kafkajs#188.
//
// Ideal: a route whose records carry occurred_at falls back to the time of the
// commit where the topic would refuse it, and keeps the original in a header; no
// row is refused, no key waits.

import (
	"context"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC44EventsFromAnyTimePassATopicWithAWindow(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 3, map[string]string{
		"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": "3600000", "message.timestamp.before.max.ms": "86400000",
	}))
	h.Routes = "by_occurrence: {topic: " + h.Topic + ", timestamp: occurred_at}"
	h.Init(t)
	r := h.Start(t)
	began := time.Now()
	times := []struct {
		at   string // SQL
		kept bool   // with timestamp: occurred_at the record has it
	}{
		{`date_trunc('milliseconds', now()) - interval '2 hours'`, true},
		{`date_trunc('milliseconds', now()) + interval '30 minutes'`, true},
		{`now() + interval '1 day'`, false},
		{`now() - interval '30 days'`, false},
		{`'epoch'`, false},
		{`'1970-06-01'`, false},
		{`'0001-01-01'`, false},
		{`'9999-12-31'`, false},
	}
	type want struct {
		occurred time.Time
		kept     bool
	}
	wants := map[string]want{}
	var commits []oracle.Commit
	conn := h.PG.Conn(t, h.Database)
	for _, route := range []string{"orders", "by_occurrence"} {
		for i, c := range times {
			for _, at := range []string{c.at, "now()"} { // its key goes on behind it
				var id string
				var occurred time.Time
				if err := conn.QueryRow(context.Background(), `insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
					values (gen_random_uuid(), gen_random_uuid(), $1, 'Tested', `+at+`, '{}', $2) returning event_id::text, occurred_at`,
					route, c.at).Scan(&id, &occurred); err != nil {
					t.Fatal(err)
				}
				wants[id] = want{occurred, route == "by_occurrence" && (c.kept && at == c.at)}
				commits = append(commits, oracle.Commit{EventID: id, Route: route, Key: c.at, Seq: int64(len(commits) + i)})
			}
		}
	}
	floor := insertRows(t, h, 1, 1, 0)
	commits = append(commits, committed(t, h)...)
	drained(t, h, floor, soon)
	r.WaitReady(soon)
	records := k.Consume(t, h.Topic)
	oracle.Require(t, commits, records, 0)
	for _, rec := range records {
		w, ours := wants[oracle.EventID(rec)]
		if !ours {
			continue // the last row
		}
		original, err := time.Parse(time.RFC3339Nano, headerOrDash(rec, "forze_occurred_at"))
		if err != nil || !original.Equal(w.occurred) {
			t.Errorf("the header of the event of %s says %q: %v", w.occurred, headerOrDash(rec, "forze_occurred_at"), err)
		}
		byCommit := rec.Timestamp.After(began.Add(-time.Minute)) && rec.Timestamp.Before(time.Now().Add(time.Minute))
		if w.kept && !rec.Timestamp.Equal(w.occurred) || !w.kept && !byCommit {
			t.Errorf("the record of the event of %s has the time %s", w.occurred, rec.Timestamp)
		}
	}
}
