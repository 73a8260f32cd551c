package pgserver

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestPromotedStandbyIsTheSameSystemOnANewTimelineWithoutItsPrimarysSlots(t *testing.T) {
	t.Parallel()
	for _, v := range []Version{V15, V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			primary := Start(t, Options{Version: v})
			primary.Exec(t, "create table kept (n int)")
			primary.Exec(t, "select pg_create_logical_replication_slot('old', 'pgoutput')")
			standby := primary.Standby(t, StandbyOptions{})
			primary.Exec(t, "insert into kept values (1), (2)")
			standby.AwaitReplay(t)
			name := NewForward(t, primary.Port())
			const identity = "select system_identifier from pg_control_system()"
			through := func() *pgx.Conn {
				conn, err := pgx.Connect(t.Context(), name.URL(t, primary.URL("postgres")))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close(context.Background()) })
				return conn
			}
			before := through()
			id := query[int64](t, before, identity)
			primary.Kill(t)
			standby.Promote(t)
			name.Flip(standby.Port())
			if err := before.Ping(t.Context()); err == nil {
				t.Error("a session survived the flip of its address")
			}
			after := through()
			if got := query[int64](t, after, identity); got != id {
				t.Errorf("the promoted standby is system %d, the primary was %d", got, id)
			}
			if got := query[int](t, after, "select count(*) from kept"); got != 2 {
				t.Errorf("the promoted standby has %d rows, want 2", got)
			}
			if got := query[int](t, after, "select count(*) from pg_replication_slots where slot_name = 'old'"); got != 0 {
				t.Error("the promoted standby has the primary's slot")
			}
			if got := standby.Timeline(t); got != 2 {
				t.Errorf("the promoted standby is on timeline %d, want 2", got)
			}
			standby.Exec(t, "insert into kept values (3)")
		})
	}
}

func TestSyncedSlotOutlivesThePromotion(t *testing.T) {
	t.Parallel()
	for _, v := range []Version{V17, V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			primary := Start(t, Options{Version: v})
			standby := primary.Standby(t, StandbyOptions{})
			primary.Exec(t, "create publication p for all tables")
			primary.Exec(t, "select pg_create_logical_replication_slot('kept', 'pgoutput', false, false, true)")
			const changes = "select count(*) from pg_logical_slot_get_binary_changes('kept', null, null, 'proto_version', '1', 'publication_names', 'p')"
			quit := make(chan struct{})
			var consumer sync.WaitGroup
			consumer.Go(func() {
				for tick := time.NewTicker(50 * time.Millisecond); ; {
					select {
					case <-quit:
						tick.Stop()
						return
					case <-tick.C:
						if err := primary.execIn("postgres", changes); err != nil {
							t.Errorf("consume the slot: %v", err)
						}
					}
				}
			})
			stop := sync.OnceFunc(func() {
				close(quit)
				consumer.Wait()
			})
			defer stop()
			standby.SyncSlot(t, "kept")
			stop()
			primary.Kill(t)
			standby.Promote(t)
			standby.Exec(t, "create table written (n int); insert into written values (1)")
			got := query[int](t, standby.Conn(t), changes)
			if got < 3 {
				t.Errorf("the slot decodes %d messages, want at least a begin, an insert and a commit", got)
			}
		})
	}
}

// What DESIGN 5.8 is about: the log is ahead of visibility.
func TestLogShowsACommitThatNobodySeesWhileASynchronousStandbyIsSlow(t *testing.T) {
	t.Parallel()
	for _, v := range []Version{V15, V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			primary := Start(t, Options{Version: v})
			primary.Exec(t, "create table kept (n int)")
			standby := primary.Standby(t, StandbyOptions{Synchronous: true})
			primary.Exec(t, "create publication p for all tables")
			primary.Exec(t, "select pg_create_logical_replication_slot('s', 'pgoutput')")
			conn, writer := primary.Conn(t), primary.Conn(t)
			standby.Pause(t)
			committed := make(chan error, 1)
			go func() {
				_, err := writer.Exec(context.Background(), "insert into kept values (1)")
				committed <- err
			}()
			const peek = "select count(*) from pg_logical_slot_peek_binary_changes('s', null, null, 'proto_version', '1', 'publication_names', 'p')"
			await(t, "the row in the log", func(context.Context) (bool, error) { return query[int](t, conn, peek) >= 3, nil })
			if n := query[int](t, conn, "select count(*) from kept"); n != 0 {
				t.Errorf("%d rows are visible before the standby answered", n)
			}
			select {
			case err := <-committed:
				t.Errorf("the commit did not wait: %v", err)
			default:
			}
			standby.Continue(t)
			if err := <-committed; err != nil {
				t.Fatal(err)
			}
			if n := query[int](t, conn, "select count(*) from kept"); n != 1 {
				t.Errorf("%d rows are visible after the commit", n)
			}
		})
	}
}

func TestApplyDelayOfASynchronousStandbyIsTheTimeOfACommit(t *testing.T) {
	t.Parallel()
	primary := Start(t, Options{})
	primary.Exec(t, "create table kept (n int)")
	const delay = 400 * time.Millisecond
	primary.Standby(t, StandbyOptions{Synchronous: true, ApplyDelay: delay})
	began := time.Now()
	primary.Exec(t, "insert into kept values (1)")
	if took := time.Since(began); took < delay*9/10 {
		t.Errorf("a commit took %s, the standby applies it after %s", took, delay)
	}
}

func TestStandbyStreamsOnAfterItsWireWasCut(t *testing.T) {
	t.Parallel()
	primary := Start(t, Options{})
	wire := NewForward(t, primary.Port())
	standby := primary.Standby(t, StandbyOptions{Through: wire.Port()})
	wire.Flip(0)
	primary.Exec(t, "create table kept (n int)")
	if query[bool](t, standby.Conn(t), "select to_regclass('kept') is not null") {
		t.Error("the table came over a wire that was cut")
	}
	wire.Flip(primary.Port())
	standby.AwaitReplay(t)
	if !query[bool](t, standby.Conn(t), "select to_regclass('kept') is not null") {
		t.Error("the table did not come")
	}
}
