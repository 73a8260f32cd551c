package cases

// C27 Publication with column list or row filter
//
// Source: dbtrail/dbtrail#886, risingwavelabs/risingwave#10804.
//
// Ideal: a publication that hides columns, rows or the table from the stream is
// refused at the start, and noticed at the next check when it is changed later,
// by the names of table and columns or filter; no row that was not sent is
// passed over. Letting a filter through has to be asked for.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// narrowings hide something of public.outbox; what is in words has to be named.
var narrowings = map[string]struct {
	sql   string
	words []string
	// first is for a change under a running relay, where the row that follows may be
	// met before the next check; then its first missing column is named.
	first []string
}{
	"columns": {`alter publication %s set table outbox (id, payload)`, []string{"public.outbox", "event_id", "outbox_route", "ordering_key"}, []string{"public.outbox", "event_id"}},
	"filter":  {`alter publication %s set table outbox where (outbox_route = 'orders')`, []string{"public.outbox", "outbox_route = 'orders'"}, []string{"public.outbox", "outbox_route = 'orders'"}},
	"table":   {`alter publication %s drop table outbox`, []string{"public.outbox"}, []string{"public.outbox"}},
	"inserts": {`alter publication %s set (publish = 'update')`, []string{"insert"}, []string{"insert"}},
}

func TestC27NarrowPublicationIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		for name, n := range narrowings {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h, k := newRowsHouse(t, v, 1)
				h.Exec(t, fmt.Sprintf(n.sql, h.Publication))
				newLedger(h).write(t, "a", "b")
				before := h.ReadSlot(t)
				out, code := h.Command(t, "check")
				if code != exitPrecondition {
					t.Errorf("check exited %d, want %d", code, exitPrecondition)
				}
				contains(t, "check", failures(out), append(n.words, h.Publication)...)
				out, code = h.Command(t, "run", "--exit-on-halt", "--log-format", "json")
				if code != exitPrecondition {
					t.Errorf("run --exit-on-halt exited %d, want %d", code, exitPrecondition)
				}
				contains(t, "run --exit-on-halt", out, append(n.words, h.Publication)...)
				if now := h.ReadSlot(t); now.Confirmed != before.Confirmed {
					t.Errorf("the slot moved from %s to %s", before.Confirmed, now.Confirmed)
				}
				if got := k.Consume(t, h.Topic); len(got) != 0 {
					t.Errorf("%d records were published", len(got))
				}
			})
		}
	})
}

func TestC27PublicationNarrowedLaterIsNoticedAndNothingPassedOver(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		// A server of its own: others' commits would blur what a position has passed.
		pg, k := pgserver.Start(t, pgserver.Options{Version: v}), kafkaserver.Shared(t)
		for name, n := range narrowings {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 1, nil))
				h.Init(t)
				r := h.Start(t)
				l := newLedger(h)
				l.write(t, "a", "b")
				l.drained(t, soon)
				h.Exec(t, fmt.Sprintf(n.sql, h.Publication))
				// Rows for routes that the filter shows and hides.
				hidden := newLedger(h)
				hidden.insert = strings.Replace(forzeInsert, "'orders'", "case n when 1 then 'orders' else 'hidden' end", 1)
				hidden.write(t, "a", "b", "c")
				looks := watchSlot(t, h)
				contains(t, "/readyz", r.WaitNotReady(soon, h.Publication), h.Publication)
				// More log than an idle relay would wait for before it follows.
				h.Exec(t, `create table other as select repeat(md5(n::text), 100) from generate_series(1, 2000) n`)
				hidden.write(t, "d")
				rig.Eventually(t, "the reason by name", soon, func() error {
					_, body, err := r.Get("/readyz")
					if err != nil {
						return err
					}
					for _, w := range n.first {
						if !strings.Contains(body, w) {
							return fmt.Errorf("%q is not in %s", w, body)
						}
					}
					return nil
				})
				neverPast(t, looks.stop(), hidden.floor(0))
				// At most what the narrow publication still showed has arrived.
				for _, rec := range k.Consume(t, h.Topic)[2:] {
					if string(rec.Value) != `{"n": 1}` {
						t.Errorf("a record of key %s arrived after the publication was narrowed", rec.Key)
					}
				}
			})
		}
	})
}

func TestC27FilterPassesWhenAskedForAndIsShown(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
	forzeTable(t, h, "jsonb")
	h.Exec(t, `create publication `+h.Publication+` for table outbox where (outbox_route = 'orders') with (publish = 'insert')`)
	h.Postgres = "allow_row_filter: true"
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(readyWithin)
	l := newLedger(h)
	l.write(t, "a", "b")
	k.ConsumeN(t, 2, soon, h.Topic)
	rig.Eventually(t, "a warning of the filter", soon, func() error {
		if r.Metric("walrelay_config_warnings") == 0 {
			return errorText("walrelay_config_warnings is 0")
		}
		return nil
	})
	_, body, err := r.Get("/readyz")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "/readyz", body, "allow_row_filter")
}

// failures are the lines of check that say what is missing.
func failures(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if strings.Contains(line, "FAIL ") || strings.Contains(line, "remedy:") {
			b.WriteString(line)
		}
	}
	return b.String()
}
