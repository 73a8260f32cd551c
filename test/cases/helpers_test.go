package cases

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// onEach runs body once per version of Postgres, in parallel; by default on the
// oldest and the newest.
func onEach(t *testing.T, body func(*testing.T, pgserver.Version), versions ...pgserver.Version) {
	t.Helper()
	if len(versions) == 0 {
		versions = []pgserver.Version{pgserver.V15, pgserver.V18}
	}
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			body(t, v)
		})
	}
}

// readyWithin bounds the start of a relay on a busy machine.
const readyWithin = 30 * time.Second

// memoryBound is what the relay's resident memory stays below in every case.
const memoryBound = 128 << 20

// smallInMemory fails the test if the relay's memory ever exceeded its bound.
func smallInMemory(t testing.TB, r *rig.Relay) {
	t.Helper()
	if _, peak := r.RSS(); peak > memoryBound {
		t.Errorf("the relay took %d MiB at its peak, bound is %d", peak>>20, memoryBound>>20)
	}
}

// stopsClean ends the relay in good order.
func stopsClean(t testing.TB, r *rig.Relay) {
	t.Helper()
	smallInMemory(t, r)
	if code, took := r.Stop(); code != 0 {
		t.Errorf("the stop took %s and exited %d, want 0", took, code)
	}
}

// contains fails the test for each text that is not in what.
func contains(t testing.TB, what, in string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(in, text) {
			t.Errorf("%s does not say %q: %s", what, text, in)
		}
	}
}

// look is one look at the slot.
type look struct {
	at        time.Time
	confirmed event.LSN
	pid       int // of the walsender that has it; 0: none
	// replied is when the walsender last heard from the relay.
	replied time.Time
}

// watch looks at a slot all the time.
type watch struct {
	quit, done chan struct{}
	mu         sync.Mutex
	looks      []look
}

// watchSlot looks at the house's slot every 20 ms until stop is called. While the
// server is away it sees nothing.
func watchSlot(t testing.TB, h *rig.House) *watch {
	t.Helper()
	w := &watch{quit: make(chan struct{}), done: make(chan struct{})}
	go w.run(h)
	t.Cleanup(func() { w.stop() })
	rig.Eventually(t, "a look at the slot", 20*time.Second, func() error {
		if len(w.seen()) == 0 {
			return errNothingYet
		}
		return nil
	})
	return w
}

func (w *watch) run(h *rig.House) {
	defer close(w.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var conn *pgx.Conn
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			if conn != nil {
				_ = conn.Close(ctx)
			}
			return
		case <-tick.C:
		}
		var err error
		if conn == nil || conn.IsClosed() {
			if conn, err = pgx.Connect(ctx, h.PG.URL(h.Database)); err != nil {
				continue
			}
		}
		var confirmed string
		l := look{}
		err = conn.QueryRow(ctx, `select clock_timestamp(), coalesce(confirmed_flush_lsn::text, '0/0'), coalesce(active_pid, 0), coalesce(reply_time, 'epoch')
			from pg_replication_slots left join pg_stat_replication on pid = active_pid where slot_name = $1`, h.Slot).
			Scan(&l.at, &confirmed, &l.pid, &l.replied)
		if err != nil {
			continue
		}
		if l.confirmed, err = event.ParseLSN(confirmed); err != nil {
			continue
		}
		w.mu.Lock()
		w.looks = append(w.looks, l)
		w.mu.Unlock()
	}
}

// seen is what was seen so far.
func (w *watch) seen() []look {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]look(nil), w.looks...)
}

// stop ends the watch and returns all it saw.
func (w *watch) stop() []look {
	select {
	case <-w.quit:
	default:
		close(w.quit)
	}
	<-w.done
	return w.seen()
}

// neverPast fails the test if the slot was ever confirmed beyond a place. The
// test needs a server of its own: on a shared one others commit between the
// floor of a transaction and its commit.
func neverPast(t testing.TB, looks []look, floor event.LSN) {
	t.Helper()
	if len(looks) == 0 {
		t.Error("nobody looked at the slot")
	}
	for _, l := range looks {
		if l.confirmed > floor {
			t.Errorf("at %s the slot was confirmed up to %s, beyond %s, where the oldest unacknowledged event is", l.at.Format(time.TimeOnly), l.confirmed, floor)
			return
		}
	}
}

// errNothingYet is for conditions that have nothing more to say.
var errNothingYet = errors.New("nothing yet")

// outboxTable is the application's own statement for the forze outbox, with other
// types for some columns: name, type, name, type.
func outboxTable(types ...string) string {
	columns := []string{
		"id", "uuid primary key", "outbox_route", "text", "event_id", "uuid", "event_type", "text",
		"tenant_id", "uuid", "execution_id", "uuid", "correlation_id", "uuid", "causation_id", "uuid",
		"occurred_at", "timestamptz", "payload", "jsonb", "status", "text", "created_at", "timestamptz",
		"published_at", "timestamptz", "processing_at", "timestamptz", "available_at", "timestamptz",
		"last_error", "text", "attempts", "int default 0", "ordering_key", "text", "traceparent", "text", "hlc", "bigint",
	}
	for i := 0; i < len(types); i += 2 {
		columns[slices.Index(columns, types[i])+1] = types[i+1]
	}
	var b strings.Builder
	for i := 0; i < len(columns); i += 2 {
		b.WriteString(", " + columns[i] + " " + columns[i+1])
	}
	return "create table public.outbox (" + b.String()[2:] + ")"
}
