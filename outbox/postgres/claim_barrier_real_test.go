package postgres

import (
	"fmt"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

// A claim goes on in the server when its client is gone. Whoever looks meanwhile for
// what holds keys, or for what a dead holder left, must not miss what it takes.
func TestNobodyLooksForRowsInTheMiddleOfAClaim(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"look", "reclaim"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
				h := newHouse(t, srv, event.Forze, forzeTable, nil)
				h.insert(1, 3, 3)
				// A claim ends when the test lets it.
				h.exec(`create function slow() returns trigger language plpgsql as 'begin if new.status = ''processing'' then perform pg_advisory_xact_lock(7); end if; return new; end';
 create trigger slow before update on public.outbox for each row execute function slow(); select pg_advisory_lock(7)`)
				claimed := make(chan error, 1)
				go func() {
					_, err := h.Claim(h.ctx(), outbox.Request{Limit: 2})
					claimed <- err
				}()
				waiting := func(n int) {
					t.Helper()
					h.until(fmt.Sprint(n, " wait"), fmt.Sprintf(`select (count(*) = %d)::text from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`, n))
				}
				waiting(1)
				other, _ := h.another(event.Forze, nil)
				found := make(chan string, 1)
				go func() {
					if what == "look" {
						rows, _, err := other.Unfinished(h.ctx(), outbox.Shards{}, 9)
						found <- fmt.Sprint(len(rows), err)
						return
					}
					n, err := other.Reclaim(h.ctx(), outbox.Reclaim{Shards: outbox.Shards{Own: []int{0}, Of: 1}, Tenures: []outbox.Tenure{{From: "-infinity", Until: "infinity"}}})
					found <- fmt.Sprint(n, err)
				}()
				waiting(2)
				h.exec(`select pg_advisory_unlock(7)`)
				if err := <-claimed; err != nil {
					t.Fatal(err)
				}
				if got := <-found; got != "2 <nil>" {
					t.Errorf("found %s, want the 2 rows of the claim", got)
				}
			})
		})
	}
}
