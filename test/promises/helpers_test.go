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
}

func newSession(t *testing.T, h *rig.House) *session {
	t.Helper()
	return &session{t, h.PG.Conn(t, h.Database)}
}

// do runs statements, one after the other; an error ends the test.
func (s *session) do(statements ...string) {
	s.t.Helper()
	for _, sql := range statements {
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

// drained waits until all that is committed by now is confirmed.
func drained(t *testing.T, h *rig.House) {
	t.Helper()
	var text string
	if err := h.PG.Conn(t, h.Database).QueryRow(context.Background(), `select pg_current_wal_insert_lsn()::text`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	want := lsn(t, text)
	rig.Eventually(t, "the confirmation of all that was committed", 2*soon, func() error {
		if at := lsn(t, h.ReadSlot(t).Confirmed); at < want {
			return fmt.Errorf("confirmed is %s of %s", at, want)
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
