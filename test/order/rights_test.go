package order

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
)

const grant = "GRANT pg_read_all_stats TO "

// Without the right to see other roles' transactions each event waits for order.transaction, and
// no longer; what is missing is said, and init sees to it.
func TestRoleThatSeesNoTransactionsWaitsForOrderTransactionAndIsToldTheGrant(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		pg := pgserver.Shared(t, v)
		h, k := newHouse(t, pg, 1, byStamp, strings.Replace(patient, "10m", "1s", 1))
		role, password := pg.NewRole(t, "replication")
		h.Postgres = "role: " + role
		out, code := h.Command(t, "init", "--print")
		if code != 0 || !strings.Contains(out, grant) || !strings.Contains(out, role) {
			t.Errorf("init --print exited %d and has no %s%s:\n%s", code, grant, role, out)
		}
		h.Init(t)
		member := func() string {
			return ask(t, h, `select pg_has_role($1, 'pg_read_all_stats', 'USAGE')::text`, role)
		}
		if member() != "true" {
			t.Error("init did not give the role pg_read_all_stats")
		}
		h.URL = pg.URLAs(role, password, h.Database)
		if out, code := h.Command(t, "check"); code != 0 || strings.Contains(out, grant) {
			t.Errorf("check exited %d although nothing is missing:\n%s", code, out)
		}
		h.Exec(t, `revoke pg_read_all_stats from `+role)
		// Nobody else is connected, as before an application's first start.
		if out, _ := h.Command(t, "check"); !strings.Contains(out, grant+role) && !strings.Contains(out, grant+`"`+role) {
			t.Errorf("check does not say what is missing:\n%s", out)
		}
		db := h.PG.Conn(t, h.Database) // a session of another role
		r := h.Start(t)
		r.WaitReady(soon)
		stamps := clock(0)
		first := stamps.Now()
		stage(t, db, "a", "a1", first)
		stage(t, db, "a", "a2", stamps.Now())
		arrives(t, k, h, 2, "a1 a2")
		if waited := time.Since(time.UnixMilli(first.PhysicalMillis())); waited < time.Second {
			t.Errorf("the first was released after %s, before order.transaction had passed", waited)
		}
		// Another one's open transaction holds nothing up, as it cannot be seen.
		open := begin(t, h)
		stage(t, open, "b", "b3", stamps.Now())
		stage(t, db, "a", "a4", stamps.Now())
		arrives(t, k, h, 3, "a1 a2 a4")
		commit(t, open)
		arrives(t, k, h, 4, "a1 a2 a4 b3")
		stop(t, r)
	})
}
