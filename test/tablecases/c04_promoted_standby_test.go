package tablecases

// C04 Promoted standby without the slot.
// Source: patroni/patroni#1749, #1056, EnterpriseDB/pg_failover_slots#25.
// Ideal: the relay notices the changed timeline or the missing slot on a system it
// knows, and does not stream on over the gap; what is lost is reported. Where the
// slot was synced to the standby (Postgres 17 and later) it just goes on.

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// failover is a house whose address leads to a primary that has a standby.
type failover struct {
	*table
	standby *pgserver.Server
	address *pgserver.Forward
}

func newFailover(t *testing.T, v pgserver.Version, onGap string) *failover {
	t.Helper()
	primary := pgserver.Start(t, pgserver.Options{Version: v})
	f := &failover{standby: primary.Standby(t, pgserver.StandbyOptions{}), address: pgserver.NewForward(t, primary.Port())}
	f.table = logged(t, primary, onGap)
	f.URL = f.address.URL(t, primary.URL(f.Database))
	f.Init(t)
	return f
}

// fail kills the primary and promotes the standby behind the same address.
func (f *failover) fail(t *testing.T) {
	t.Helper()
	f.standby.AwaitReplay(t)
	f.PG.Kill(t)
	f.standby.Promote(t)
	f.address.Flip(f.standby.Port())
	f.PG = f.standby
}

func TestC04PromotedStandbyWithoutTheSlotIsAGap(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		f := newFailover(t, v, "stop")
		f.ranOnce(t)
		f.fill(t, 100, 10, 10)
		f.fail(t)
		r := f.halts(t, f.Slot)
		if got := f.ask(t, `select count(*)::text from pg_replication_slots`); got != "0" {
			t.Error("a new slot was made in silence")
		}
		stopHalted(t, r)
		f.onGap("catch_up")
		r = f.catchesUp(t)
		stopAll(t, r)
		f.judge(t, 0)
	})
}

func TestC04FailoverUnderARunningRelayIsCaughtUpFromTheTable(t *testing.T) {
	t.Parallel()
	f := newFailover(t, pgserver.V15, "catch_up")
	r := startAll(t, f.House)[0]
	f.fill(t, 100, 10, 10)
	f.published(t, soon)
	r.Signal(syscall.SIGSTOP) // so that these come after the failover
	f.fill(t, 100, 10, 10)
	f.fail(t)
	r.Signal(syscall.SIGCONT)
	f.published(t, soon)
	f.fill(t, 10, 10, 10)
	f.published(t, soon)
	stopAll(t, r)
	// Those that the primary had sent to the relay, which could not mark them there.
	f.judge(t, 100)
}

func TestC04SyncedSlotGoesOnWithoutAGap(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		f := newFailover(t, v, "stop")
		r := startAll(t, f.House)[0]
		f.fill(t, 50, 10, 5)
		f.published(t, soon)
		f.standby.SyncSlot(t, f.Slot)
		f.fill(t, 50, 10, 5)
		f.published(t, soon)
		stopAll(t, r)
		f.fill(t, 100, 10, 10)
		synced(t, f)
		f.fail(t)
		r = f.Start(t)
		f.published(t, soon)
		r.WaitReady(readyWithin)
		f.fill(t, 10, 10, 10)
		f.published(t, soon)
		stopAll(t, r)
		f.judge(t, 0)
	}, pgserver.V17, pgserver.V18)
}

// synced waits until the standby's copy of the slot is where the primary's is: an
// operator's own check before a switchover.
func synced(t *testing.T, f *failover) {
	t.Helper()
	want := f.ReadSlot(t).Confirmed
	conn := f.standby.Conn(t)
	rig.Eventually(t, "the copy of the slot at "+want, soon, func() error {
		var got string
		err := conn.QueryRow(t.Context(), `select confirmed_flush_lsn::text from pg_replication_slots where slot_name = $1`, f.Slot).Scan(&got)
		if err == nil && got != want {
			err = fmt.Errorf("it is at %s", got)
		}
		return err
	})
}
