package order

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// held is a relay whose buffer holds what an open transaction keeps back.
type held struct {
	h    *rig.House
	k    *kafkaserver.Server
	r    *rig.Relay
	open pgx.Tx // holds a 1, b 2; b 3, a 4 and c 5 are committed
}

func newHeld(t *testing.T, v pgserver.Version) held {
	h, k := newHouse(t, pgserver.Shared(t, v), 1, byStamp, patient)
	h.Postgres = "status_interval: 200ms"
	h.Init(t)
	x := held{h: h, k: k, r: h.Start(t)}
	x.r.WaitReady(soon)
	stamps := clock(0)
	db := h.PG.Conn(t, h.Database)
	stage(t, db, "a", "a0", stamps.Now())
	k.ConsumeN(t, 1, soon, h.Topic)
	x.open = begin(t, h)
	stage(t, x.open, "a", "a1", stamps.Now())
	stage(t, x.open, "b", "b2", stamps.Now())
	for _, name := range []string{"b3", "a4", "c5"} {
		stage(t, db, name[:1], name, stamps.Now())
	}
	received(t, x.r, 0, 4)
	looked(t, h, 5)
	x.replied(t)
	return x
}

// replied waits until the relay has told the server twice, from now on, where it is.
func (x held) replied(t *testing.T) {
	t.Helper()
	const last = `select coalesce((select reply_time from pg_stat_replication r join pg_replication_slots s on s.active_pid = r.pid where slot_name = $1), 'epoch')::text`
	at := ask(t, x.h, `select now()::text`)
	for range 2 {
		x.r.Eventually("a reply to the server", soon, func() error {
			if ask(t, x.h, `select (`+last+`::timestamptz > $2)::text`, x.h.Slot, at) != "true" {
				return errors.New("none")
			}
			return nil
		})
		at = ask(t, x.h, last, x.h.Slot)
	}
}

// unconfirmed is how many events the slot would send again.
func (x held) unconfirmed(t *testing.T) (n string) {
	t.Helper()
	rig.Eventually(t, "the slot to be free", soon, func() error {
		if x.h.ReadSlot(t).Active {
			return errors.New("it is in use")
		}
		return nil
	})
	return ask(t, x.h, `select count(*)::text from pg_logical_slot_peek_binary_changes($1, null, null, 'proto_version', '1', 'publication_names', $2)
		where get_byte(data, 0) = ascii('I')`, x.h.Slot, x.h.Publication)
}

// A kill while the buffer holds events: they are read again, since nothing at or above the
// oldest of them was confirmed.
func TestKillWithHeldEventsLosesNone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		x := newHeld(t, v)
		x.r.Kill()
		if n := x.unconfirmed(t); n != "3" && n != "4" {
			t.Errorf("the slot still has %s events, want the 3 that were held, and at most a0", n)
		}
		r := x.h.Start(t)
		r.WaitReady(soon)
		received(t, r, 0, 3)
		looked(t, x.h, 5)
		commit(t, x.open)
		switch got := names(x.k.ConsumeN(t, 6, soon, x.h.Topic)); got {
		case "a0 a1 b2 b3 a4 c5", "a0 a0 a1 b2 b3 a4 c5":
		default:
			t.Errorf("arrived %s, want all in the order of their numbers, at most a0 twice", got)
		}
		stop(t, r)
	})
}

// A stop does not wait for the transaction that the events wait for.
func TestStopWithHeldEventsPublishesEachOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		x := newHeld(t, v)
		stop(t, x.r)
		arrives(t, x.k, x.h, 4, "a0 b3 a4 c5")
		r := x.h.Start(t)
		r.WaitReady(soon)
		commit(t, x.open)
		arrives(t, x.k, x.h, 6, "a0 b3 a4 c5 a1 b2")
		stop(t, r)
	})
}
