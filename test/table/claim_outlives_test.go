package table

import (
	"context"
	"errors"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// A relay is killed while the server works at its claim, and the claim ends long after the
// relay's lease. Later rows of the key do not pass those that it took, which nobody knew of when the lease was over.
func TestAClaimThatOutlivesItsRelayIsNotPassed(t *testing.T) {
	t.Parallel()
	on(t, 3, func(t *testing.T, h *rig.House, k *kafkaserver.Server) {
		const rows = 12
		h.Postgres = "capture: poll"
		h.Source = "after_publish: mark\npoll: {interval: 100ms, lease: 3s, batch: 2}"
		h.Init(t)
		put(t, h, "k", 1, rows, 0)
		// The first claim ends when the test lets it.
		h.Exec(t, `create sequence claims`)
		h.Exec(t, `create function slow() returns trigger language plpgsql as $$ begin
 if new.status = 'processing' and nextval('claims') = 1 then
  perform set_config('lock_timeout', '0', true), pg_advisory_xact_lock(7);
 end if;
 return new; end $$`)
		h.Exec(t, `create trigger slow before update on public.outbox for each row execute function slow()`)
		gate := h.PG.Conn(t, h.Database)
		must := func(sql string) {
			t.Helper()
			if _, err := gate.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Fatal(err)
			}
		}
		must(`select pg_advisory_lock(7)`)
		wait := func(what, sql string, args ...any) {
			t.Helper()
			rig.Eventually(t, what, soon, func() error {
				if s, err := answer(t, h, sql, args...); err != nil || s != "true" {
					return errors.Join(err, errors.New("not yet"))
				}
				return nil
			})
		}
		r := h.Start(t)
		wait("the claim in the middle", `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')::text`)
		r.Kill()
		end := ask(t, h, `select max(expires_at)::text from walrelay.lease`)
		r = h.Start(t)
		wait("the end of the lease, and time for the successor", `select (clock_timestamp() > $1::text::timestamptz + interval '2 s')::text`, end)
		must(`select pg_advisory_unlock(7)`)
		owesNothing(t, h, soon)
		stop(t, r)
		oracle.Require(t, commits(rows, func(int) string { return "k" }), k.Consume(t, h.Topic), 0)
	})
}
