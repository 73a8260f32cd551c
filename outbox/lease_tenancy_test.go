package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// member is a tenancy that runs.
type member struct {
	*outbox.Tenancy
	down   atomic.Bool
	lost   atomic.Int64
	cancel context.CancelFunc
	done   chan struct{}
}

func join(t *testing.T, db *outboxfake.DB, name string, want outbox.LeaseWant) *member {
	m := &member{done: make(chan struct{})}
	leases := &outboxfake.Leases{DB: db, Before: func(string) error {
		if m.down.Load() {
			return errDown
		}
		return nil
	}}
	m.Tenancy = outbox.NewTenancy(leases, name, outbox.Options{}, outbox.TenancyObserver{
		Lost: func(n int) { m.lost.Add(int64(n)) },
	})
	m.Ask(want)
	ctx, cancel := context.WithCancel(t.Context())
	m.cancel = cancel
	go func() {
		defer close(m.done)
		m.Run(ctx)
	}()
	t.Cleanup(m.end)
	return m
}

func (m *member) end() {
	m.cancel()
	<-m.done
}

func (m *member) own() int { return len(m.View().Shards.Own) }

func TestMembersShareFairlyAsTheyComeAndGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := outboxfake.NewDB()
		a := join(t, db, "a", outbox.WantShare)
		until(t, 5*time.Second, "a has all", func() bool { return a.own() == 16 })
		b, c := join(t, db, "b", outbox.WantShare), join(t, db, "c", outbox.WantShare)
		until(t, 15*time.Second, "three share", func() bool { return a.own() == 6 && b.own()+c.own() == 10 })
		b.end()
		if err := b.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, 10*time.Second, "two share what was released", func() bool { return a.own() == 8 && c.own() == 8 })
		c.down.Store(true) // and a dead one's shards come back after the TTL
		until(t, 25*time.Second, "one has all", func() bool { return a.own() == 16 && c.own() == 0 })
		if n := len(a.View().Tenures); n != 8 {
			t.Errorf("%d tenures of eight shards of a dead holder", n)
		}
		if a.lost.Load() != 0 || c.lost.Load() != 8 {
			t.Errorf("a lost %d, c lost %d", a.lost.Load(), c.lost.Load())
		}
	})
}

func TestNoMemberIsLeftWithoutAPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := outboxfake.NewDB()
		var all []*member
		for _, name := range []string{"e", "a", "c", "b", "d"} {
			all = append(all, join(t, db, name, outbox.WantShare))
		}
		until(t, 15*time.Second, "five share sixteen parts", func() bool {
			sum := 0
			for _, m := range all {
				if sum += m.own(); m.own() < 3 || m.own() > 4 {
					return false
				}
			}
			return sum == 16
		})
	})
}

func TestAHolderLetsGoBeforeTheDatabaseDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := outboxfake.NewDB()
		a := join(t, db, "a", outbox.WantShare)
		until(t, 5*time.Second, "a has all", func() bool { return a.own() == 16 })
		before := a.Losses()
		a.down.Store(true)
		until(t, 11*time.Second, "a let go", func() bool { return a.own() == 0 })
		if len(db.Holders()) != 16 {
			t.Error("the database had given the shards away already")
		}
		if a.Losses() == before || a.lost.Load() != 16 {
			t.Errorf("the loss of 16 shards was told as %d", a.lost.Load())
		}
		a.down.Store(false)
		until(t, 5*time.Second, "a has all again", func() bool { return a.own() == 16 })
	})
}

func TestOfTwoWhoWantAllOneGetsThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := outboxfake.NewDB()
		a, b := join(t, db, "a", outbox.WantShare), join(t, db, "b", outbox.WantShare)
		until(t, 15*time.Second, "they share", func() bool { return a.own() == 8 && b.own() == 8 })
		a.Ask(outbox.WantAll)
		b.Ask(outbox.WantAll)
		until(t, 15*time.Second, "one has all", func() bool { return a.own()+b.own() == 16 && a.own()*b.own() == 0 })
		first, second := a, b
		if b.own() > 0 {
			first, second = b, a
		}
		time.Sleep(time.Minute)
		if !first.View().All || second.own() != 0 || len(second.View().Others) != 1 {
			t.Fatalf("%d and %d shards, others %v", first.own(), second.own(), second.View().Others)
		}
		first.Ask(outbox.WantNone)
		until(t, 10*time.Second, "the other has all", func() bool { return second.View().All })
	})
}

func TestNothingIsGivenBackWhileItsRowsAreUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := outboxfake.NewDB()
		a := join(t, db, "a", outbox.WantShare)
		until(t, 5*time.Second, "a has all", func() bool { return a.own() == 16 })
		a.Under(a.View().Version) // rows were claimed
		b := join(t, db, "b", outbox.WantShare)
		time.Sleep(time.Minute)
		if a.own() != 8 || b.own() != 0 {
			t.Fatalf("a claims of %d, b has %d already", a.own(), b.own())
		}
		a.Under(a.View().Version) // those rows are settled, and others were claimed since
		until(t, 10*time.Second, "b has its share", func() bool { return b.own() == 8 })
	})
}

func TestALeaseThatCannotBeKeptForGoodIsAHalt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		halt := &event.Error{Class: event.Halt, What: "the table of leases is not there", Remedy: "run walrelay init"}
		leases := &outboxfake.Leases{DB: db, Before: func(string) error { return halt }}
		tenancy := outbox.NewTenancy(leases, "a", outbox.Options{}, outbox.TenancyObserver{})
		poller := outbox.NewPoller([]outbox.Table{&outboxfake.Table{DB: db, Kind: outboxfake.ForzeRow}}, tenancy, nil, outbox.NewGate(),
			outbox.Options{}, outbox.Gear{}, outbox.PollerObserver{})
		go tenancy.Run(t.Context())
		_, err := poller.Next(t.Context())
		if event.ClassOf(err) != event.Halt || len(b.log) > 0 {
			t.Fatalf("want the halt, got %v", err)
		}
		if err := poller.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// C57: a dead relay's claims are reclaimed by whoever gets its shards, at once.
func TestTheClaimsOfADeadRelayAreTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		one := start(t, db, b, setup{name: "one", delay: func() time.Duration { return 20 * time.Second }})
		for i := range 30 {
			insert(db, fmt.Sprint("k", i%7), 1)
		}
		until(t, 5*time.Second, "claimed", func() bool { return db.Count(outboxfake.Processing) == 30 })
		began := time.Now()
		two := start(t, db, b, setup{name: "two"})
		one.kill()
		until(t, 15*time.Second, "drained", drained(db))
		if took := time.Since(began); took > 13*time.Second {
			t.Errorf("taken over after %v", took)
		}
		if n := two.n.reclaimed.Load(); n != 30 {
			t.Errorf("%d of 30 claims were reclaimed", n)
		}
		if r := db.Row("r000001"); r.Attempts != 1 {
			t.Errorf("the lost try is not counted: %+v", r)
		}
		if inversions(b) != 0 || len(b.ids("")) != 30 {
			t.Errorf("%d deliveries of 30, %d inversions", len(b.ids("")), inversions(b))
		}
		two.stop(t)
	})
}

// The feeder waits for the broker, and a shard is lost meanwhile.
func TestRowsOfALostShardAreNotSentEvenWhileTheFeederWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		insert(db, "k", 50)
		var cut atomic.Bool
		one := start(t, db, b, setup{name: "one", kind: outboxfake.ForzeLease, room: 2, delay: func() time.Duration { return time.Second }, before: func(string) error {
			if cut.Load() {
				return errDown
			}
			return nil
		}})
		until(t, time.Minute, "sending", func() bool { return len(b.ids("")) == 3 })
		cut.Store(true)
		one.leaseUp()
		<-one.leased
		time.Sleep(9 * time.Second) // the lease is over
		sent := len(b.ids(""))
		time.Sleep(10 * time.Second)
		if n := len(b.ids("")); n > sent {
			t.Fatalf("%d rows were sent after the lease was over", n-sent)
		}
	})
}

// A claim that began under a lease and came back after it.
func TestRowsOfAClaimThatOutlivedItsLeaseAreNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		insert(db, "k", 3)
		one := start(t, db, b, setup{name: "one", slow: func(op string) {
			if op == "claim" {
				time.Sleep(30 * time.Second)
			}
		}})
		time.Sleep(5 * time.Second)
		one.leaseUp()
		<-one.leased
		time.Sleep(time.Minute)
		if n := len(b.ids("")); n != 0 || one.n.released.Load() != 3 {
			t.Fatalf("%d rows were sent, %d released", n, one.n.released.Load())
		}
		one.stop(t)
	})
}

// A claim is on its way while its shards are to be given back.
func TestAShardIsNotGivenBackUnderAClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		var claims atomic.Int64
		one := start(t, db, b, setup{name: "one", kind: outboxfake.ForzeLease, slow: func(op string) {
			if op == "claim" && claims.Add(1) == 1 {
				time.Sleep(time.Minute)
			}
		}})
		for i := range 60 {
			insert(db, fmt.Sprint("k", i%20), 1)
		}
		time.Sleep(5 * time.Second)
		two := start(t, db, b, setup{name: "two", kind: outboxfake.ForzeLease})
		until(t, 3*time.Minute, "drained", drained(db))
		if n := len(b.ids("")); n != 60 || inversions(b) != 0 {
			t.Errorf("%d deliveries of 60, %d inversions", n, inversions(b))
		}
		until(t, time.Minute, "they share", func() bool {
			n := 0
			for _, who := range db.Holders() {
				if who == "two" {
					n++
				}
			}
			return n == 8
		})
		one.stop(t)
		two.stop(t)
	})
}
