package postgres

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestClaimersBesideEachOtherTakeEachRowOnce(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
			h := newHouse(t, srv, event.Forze, forzeTable, nil)
			const rows = 3000
			h.insert(1, rows, 100)
			h.exec(fmt.Sprintf(`alter database %s set default_transaction_isolation = '%s'`, h.name, isolation))
			var (
				wg    sync.WaitGroup
				mu    sync.Mutex
				taken = map[string]int{}
			)
			for range 3 {
				table, _ := h.another(event.Forze, nil)
				wg.Go(func() {
					for {
						c, err := table.Claim(h.ctx(), outbox.Request{Limit: 50})
						if err != nil {
							t.Errorf("%s: claim: %v", isolation, err)
							return
						}
						if len(c.Rows) == 0 {
							return
						}
						outcomes := make([]outbox.Outcome, len(c.Rows))
						mu.Lock()
						for i := range c.Rows {
							taken[c.Rows[i].ID]++
							outcomes[i] = outbox.Outcome{ID: c.Rows[i].ID, Fence: c.Fence}
						}
						mu.Unlock()
						if !slices.IsSortedFunc(c.Rows, func(a, b outbox.Row) int { return int(a.Event.CommitMicros - b.Event.CommitMicros) }) {
							t.Errorf("%s: a claim is not in table order", isolation)
						}
						if lost, err := table.Settle(h.ctx(), outcomes); err != nil || len(lost) > 0 {
							t.Errorf("%s: lost %d: %v", isolation, len(lost), err)
						}
					}
				})
			}
			wg.Wait()
			for row, n := range taken {
				if n != 1 {
					t.Fatalf("%s: row %s was taken %d times", isolation, row, n)
				}
			}
			if got := h.ask(`select count(*)::text from public.outbox where status = 'published' and attempts = 0 and published_at is not null`); got != fmt.Sprint(rows) {
				t.Fatalf("%s: %s rows are published", isolation, got)
			}
		}
	})
}

func TestAnEmptyClaimMeansThatNothingIsFree(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 30, 10)
		foreign, err := srv.Conn(t, h.name).Begin(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := foreign.Exec(h.ctx(), `select from public.outbox where hlc <= 20 for update`); err != nil {
			t.Fatal(err)
		}
		same(t, "beside locks", rowIDs(h.claim(outbox.Request{Limit: 5})), ids(21, 25))
		if err := foreign.Rollback(h.ctx()); err != nil {
			t.Fatal(err)
		}
		same(t, "later", rowIDs(h.claim(outbox.Request{Limit: 5})), ids(1, 5))
	})
}

func TestAnOutcomeFindsARowThatMovedMeanwhile(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 2, 2)
		c := h.claim(outbox.Request{Limit: 1})
		foreign, err := srv.Conn(t, h.name).Begin(h.ctx())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := foreign.Exec(h.ctx(), `update public.outbox set traceparent = 'x'`); err != nil {
			t.Fatal(err)
		}
		settled := make(chan []int)
		go func() {
			lost, err := h.Settle(h.ctx(), []outbox.Outcome{{ID: id(1), Fence: c.Fence}})
			if err != nil {
				t.Error(err)
			}
			settled <- lost
		}()
		// A mark does not wait: the row is to be asked for again.
		if m := h.mark(outbox.Mark{ID: id(2)}); len(m.Unseen) != 1 {
			t.Fatalf("marked %+v, want it to come again", m)
		}
		if err := foreign.Commit(h.ctx()); err != nil {
			t.Fatal(err)
		}
		if lost := <-settled; len(lost) != 0 {
			t.Fatal("the outcome is lost")
		}
		if m := h.mark(outbox.Mark{ID: id(2)}); m.Pending != 1 {
			t.Fatalf("marked %+v", m)
		}
		h.wantRow(1, "published attempts=0 published_at processing_at")
	})
}

// until asks until the answer is true.
func (h *house) until(what, sql string) {
	h.t.Helper()
	for began := time.Now(); h.ask(sql) != "true"; {
		if time.Since(began) > 30*time.Second {
			h.t.Fatalf("%s: not within 30 s", what)
		}
	}
}

func TestABrokenConnectionIsRemade(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		h := newHouse(t, srv, event.Forze, forzeTable, nil)
		h.insert(1, 4, 4)
		h.claim(outbox.Request{Limit: 1})
		h.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
		h.until("they are gone", `select (count(*) = 1)::text from pg_stat_activity where datname = current_database()`)
		_, err := h.Claim(h.ctx(), outbox.Request{Limit: 1})
		if event.ClassOf(err) != event.Retry {
			t.Fatalf("want a retry, got %v", err)
		}
		same(t, "the next call", rowIDs(h.claim(outbox.Request{Limit: 1})), []string{id(2)})
		if err := h.db.Close(h.ctx()); err != nil {
			t.Fatal(err)
		}
		var e *event.Error
		if _, err := h.Claim(h.ctx(), outbox.Request{Limit: 1}); !errors.As(err, &e) || e.Class != event.Retry {
			t.Fatalf("after the end: %v", err)
		}
	})
}

func TestALockThatDoesNotComeIsARetryAndHoldsUpNoOtherRow(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V18)
	h := newHouse(t, srv, event.Forze, forzeTable, nil)
	h.insert(1, 2, 2)
	c := h.claim(outbox.Request{Limit: 2})
	foreign, err := srv.Conn(t, h.name).Begin(h.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := foreign.Exec(h.ctx(), `select from public.outbox where hlc = 2 for update`); err != nil {
		t.Fatal(err)
	}
	both := []outbox.Outcome{{ID: id(1), Fence: c.Fence}, {ID: id(2), Fence: c.Fence}}
	if _, err := h.Settle(h.ctx(), both); event.ClassOf(err) != event.Retry {
		t.Fatalf("want a retry after %s, got %v", lockPatience, err)
	}
	h.wantRow(1, "published attempts=0 published_at processing_at")
	h.wantRow(2, "processing attempts=0 processing_at")
	if err := foreign.Rollback(h.ctx()); err != nil {
		t.Fatal(err)
	}
	if lost, err := h.Settle(h.ctx(), both); err != nil || len(lost) != 0 {
		t.Fatalf("the same call again: lost %v, %v", lost, err)
	}
	h.wantRow(2, "published attempts=0 published_at processing_at")
}
