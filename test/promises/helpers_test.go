package promises

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/rig"
)

// soon bounds what ought to take well under a second, on a busy machine.
const soon = 60 * time.Second

// session is one connection of the application.
type session struct {
	t    *testing.T
	conn *pgx.Conn
	// floor is where the log stood before the last statement. When that was a commit,
	// a position beyond it confirms the transaction.
	floor event.LSN
}

func newSession(t *testing.T, h *rig.House) *session {
	t.Helper()
	return &session{t: t, conn: h.PG.Conn(t, h.Database)}
}

// do runs statements, one after the other; an error ends the test.
func (s *session) do(statements ...string) {
	s.t.Helper()
	for i, sql := range statements {
		if i > 0 && i == len(statements)-1 {
			s.floor = s.where()
		}
		if _, err := s.conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
			s.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// fails runs a statement that must not succeed.
func (s *session) fails(sql string) {
	s.t.Helper()
	if _, err := s.conn.PgConn().Exec(context.Background(), sql).ReadAll(); err == nil {
		s.t.Fatalf("%s succeeded", sql)
	}
}

// row is a statement that writes an event with a payload that is that text.
func row(text string) string {
	return fmt.Sprintf(`insert into public.outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
		values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), to_jsonb('%s'::text), 'k')`, text)
}

// where is the end of the log.
func (s *session) where() event.LSN {
	s.t.Helper()
	var text string
	if err := s.conn.QueryRow(context.Background(), `select pg_current_wal_insert_lsn()::text`).Scan(&text); err != nil {
		s.t.Fatal(err)
	}
	return lsn(s.t, text)
}

// drained waits until what was committed with this floor is confirmed, and so
// all before it. The end of the log is no target: an idle relay follows it in strides.
func drained(t *testing.T, h *rig.House, floor event.LSN) {
	t.Helper()
	rig.Eventually(t, "the confirmation of all that was committed", 2*soon, func() error {
		if at := lsn(t, h.ReadSlot(t).Confirmed); at <= floor {
			return fmt.Errorf("confirmed is %s, the last transaction ends beyond %s", at, floor)
		}
		return nil
	})
}

func lsn(t *testing.T, text string) event.LSN {
	t.Helper()
	l, err := event.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// header is the value of a record's header, empty when there is none.
func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}
