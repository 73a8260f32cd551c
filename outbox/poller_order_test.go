package outbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// C54, C57, C70 and the many pollers of the issue, by seeds: three relays with
// different delays, one is killed from time to time and comes back.
func TestManyPollersKeepOneOrder(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]outbox.Traits{
		"row": outboxfake.ForzeRow, "lease": outboxfake.ForzeLease, "basic": outboxfake.Basic, "lock": outboxfake.Debezium,
	} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { manyPollers(t, kind, rand.New(rand.NewPCG(seed, 2))) })
			})
		}
	}
}

func manyPollers(t *testing.T, kind outbox.Traits, r *rand.Rand) {
	db, b := outboxfake.NewDB(), newBroker()
	opt := outbox.Options{Batch: 5, InFlight: 40, LeaseTTL: 5 * time.Second, BackoffMin: 100 * time.Millisecond}
	b.missing["late"] = true
	run := func(name string, delay time.Duration) *process {
		return start(t, db, b, setup{
			name: name, kind: kind, opt: opt, delay: jitter(delay),
			slow: func(string) { time.Sleep(rand.N(3 * time.Millisecond)) },
		})
	}
	relays := []*process{run("m1", time.Millisecond), run("m2", 8*time.Millisecond), run("m3", 2*time.Millisecond)}
	const rows = 3000
	kills, dead := 0, 0
	for i := range rows {
		route := "orders"
		if r.IntN(200) == 0 {
			route = "late"
		}
		db.Insert(outboxfake.Row{Key: fmt.Sprint("k", r.IntN(40)), Route: route})
		switch {
		case i%20 == 0:
			time.Sleep(time.Duration(r.IntN(int(100 * time.Millisecond))))
		case i%500 == 499:
			kills++
			t.Logf("%s: %s is killed", time.Now().Format("15:04:05.000000"), relays[2].name)
			relays[2].kill()
			time.Sleep(time.Duration(r.IntN(int(12 * time.Second))))
			dead++
			relays[2] = run(fmt.Sprint("m3-", dead), 2*time.Millisecond)
		case i%700 == 699:
			t.Logf("%s: %s is stopped", time.Now().Format("15:04:05.000000"), relays[1].name)
			relays[1].stop(t)
			relays[1] = run(fmt.Sprint("m2-", i), 8*time.Millisecond)
		}
		if i%300 == 100 {
			b.change(func(b *broker) { b.missing["late"] = !b.missing["late"] })
		}
	}
	b.change(func(b *broker) { delete(b.missing, "late") })
	until(t, 10*time.Minute, "drained", func() bool { // what was given up is told to go again
		park := &outboxfake.Parking{DB: db, Kind: kind}
		list, _ := park.List(t.Context(), outbox.ParkedFilter{State: outbox.StateParked})
		for _, x := range list {
			_, _ = park.Retry(t.Context(), []int64{x.ID})
		}
		all, _ := park.List(t.Context(), outbox.ParkedFilter{})
		return drained(db)() && len(all) == 0
	})
	for _, p := range relays {
		p.stop(t)
	}
	ids := b.ids("")
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != rows {
		t.Errorf("%d of %d rows were delivered", n, rows)
	}
	for _, key := range inverted(b) {
		t.Errorf("an inversion in %s:\n%s", key, b.history(key))
	}
	if most := kills * opt.InFlight; len(ids)-rows > most {
		t.Errorf("%d duplicates after %d kills, want %d at most", len(ids)-rows, kills, most)
	}
}

// A claim is on its way while an earlier row of its key fails.
func TestARowClaimedWhileItsKeyFailedStaysBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		b.missing["late"] = true
		db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
		db.Insert(outboxfake.Row{ID: "k2", Key: "k"})
		var claims atomic.Int64
		p := start(t, db, b, setup{name: "one", opt: outbox.Options{Batch: 1}, delay: func() time.Duration { return 100 * time.Millisecond }, slow: func(op string) {
			if op == "claim" && claims.Add(1) == 2 {
				time.Sleep(300 * time.Millisecond) // k1 fails meanwhile
			}
		}})
		time.Sleep(450 * time.Millisecond)
		if n := p.n.released.Load(); n != 1 || claims.Load() < 2 {
			t.Fatalf("%d rows were released in %d claims", n, claims.Load())
		}
		b.change(func(b *broker) { delete(b.missing, "late") })
		until(t, time.Minute, "drained", drained(db))
		equal(t, b.ids("k"), []string{"k1", "k2"})
		p.stop(t)
	})
}

func TestALooseRouteHoldsNothingBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		b.missing["audit.late"] = true
		opt := outbox.Options{Attempts: 3, LooseRoute: func(r string) bool { return len(r) > 6 && r[:6] == "audit." }}
		db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "audit.late"})
		db.Insert(outboxfake.Row{ID: "k2", Key: "k"})
		db.Insert(outboxfake.Row{ID: "k3", Key: "k", Route: "audit.now"})
		p := start(t, db, b, setup{name: "one", opt: opt})
		until(t, time.Second, "the others", func() bool { return len(b.ids("k")) == 2 })
		until(t, time.Minute, "given up", func() bool { return db.Row("k1").Status == outboxfake.Failed })
		if list, _ := (&outboxfake.Parking{DB: db}).List(t.Context(), outbox.ParkedFilter{}); len(list) != 0 {
			t.Fatalf("parked: %+v", list)
		}
		p.stop(t)
	})
}

// Left behind by an earlier process, known to the table alone.
func TestAKeyOpensOnlyWhenNothingIsBehindIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b, gate := outboxfake.NewDB(), newBroker(), outbox.NewGate()
		park := &outboxfake.Parking{DB: db, Kind: outboxfake.ForzeRow}
		insert(db, "k", 100)
		_ = park.Park(t.Context(), outbox.Parked{Relation: "public.outbox", Row: "r000001", EventID: "er000001", Key: "k", Error: "too large"})
		gate.Hold("k")
		log := newLogPath(db, b, gate, func() time.Duration { return 2 * time.Millisecond })
		log.mu.Lock()
		log.passed = db.End()
		log.mu.Unlock()
		ctx, cancel := contextOf(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			log.run(ctx)
		}()
		p := start(t, db, b, setup{name: "one", gate: gate, gear: log.gear(), opt: outbox.Options{Batch: 7, SweepEvery: time.Second}, delay: jitter(10 * time.Millisecond)})
		time.Sleep(3 * time.Second)
		if len(b.ids("")) != 0 {
			t.Fatalf("a held key let %v pass", b.ids(""))
		}
		if n, _ := park.Retry(ctx, []int64{1}); n != 1 {
			t.Fatal("not told to retry")
		}
		for i := range 300 {
			id := fmt.Sprintf("s%05d", i)
			log.insert(outboxfake.Row{ID: id, EventID: id, Key: "k"})
			time.Sleep(5 * time.Millisecond)
		}
		until(t, time.Minute, "all are delivered", func() bool { return len(b.ids("k")) == 400 })
		until(t, time.Minute, "the key is free", func() bool { return gate.Len() == 0 })
		if n := inversions(b); n != 0 {
			t.Errorf("%d inversions", n)
		}
		p.stop(t)
		cancel()
		<-done
	})
}

// C58: a slow broker never costs a batch its claim.
func TestClaimsThatWaitForTheBrokerAreRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		opt := outbox.Options{ReclaimAfter: 10 * time.Second, Shards: 4}
		for i := range 20 {
			insert(db, fmt.Sprint("k", i%2), 1)
		}
		slow := func() time.Duration { return 4 * time.Second }
		one := start(t, db, b, setup{name: "one", opt: opt, delay: slow, noLease: true})
		two := start(t, db, b, setup{name: "two", opt: opt, delay: slow, noLease: true})
		until(t, 5*time.Minute, "drained", drained(db))
		one.stop(t)
		two.stop(t)
		if n := len(b.ids("")); n != 20 || one.n.lost.Load()+two.n.lost.Load() != 0 {
			t.Fatalf("%d deliveries of 20 rows, %d and %d outcomes lost", n, one.n.lost.Load(), two.n.lost.Load())
		}
	})
}

func TestALostClaimIsCountedAndItsRowsAreNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		ids := insert(db, "k", 10)
		p := start(t, db, b, setup{name: "one", opt: outbox.Options{ReclaimAfter: 9 * time.Second}, delay: func() time.Duration { return time.Second }})
		until(t, 10*time.Second, "two are sent", func() bool { return len(b.ids("")) == 2 })
		for _, id := range ids { // a foreign poller takes them and publishes
			db.Set(id, func(r *outboxfake.Row) {
				if r.Status == outboxfake.Processing {
					r.Status, r.Fence = outboxfake.Published, "theirs"
				}
			})
		}
		until(t, time.Minute, "all came back", func() bool { return p.n.lost.Load() >= 8 })
		if n := len(b.ids("")); n > 5 {
			t.Fatalf("%d rows were sent although the claim was lost", n)
		}
		p.stop(t)
	})
}

// The database's word is not needed for the end of a lease.
func TestShardsAreLetGoWhenTheyCannotBeRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		insert(db, "k", 100)
		var cut atomic.Bool
		one := start(t, db, b, setup{name: "one", delay: func() time.Duration { return time.Second }, before: func(string) error {
			if cut.Load() {
				return errDown
			}
			return nil
		}})
		until(t, time.Minute, "sending", func() bool { return len(b.ids("")) == 3 })
		// The database is out of reach for the first relay.
		cut.Store(true)
		one.leaseUp()
		<-one.leased
		two := start(t, db, b, setup{name: "two"})
		began := time.Now()
		until(t, time.Minute, "taken over", func() bool { return db.Holders()[0] == "two" })
		if took := time.Since(began); took > 12*time.Second {
			t.Errorf("take-over after %v", took)
		}
		at := time.Now()
		until(t, 10*time.Minute, "drained", drained(db))
		if n := inversions(b); n != 0 {
			t.Errorf("%d inversions", n)
		}
		b.mu.Lock()
		dup := map[string]int{}
		for _, d := range b.log {
			dup[d.id]++
			if dup[d.id] > 1 && d.at.Before(at) {
				t.Errorf("%s was sent twice before the lease was over", d.id)
			}
		}
		b.mu.Unlock()
		if n := len(b.ids("")); n > 100+15 {
			t.Errorf("%d deliveries of 100 rows", n)
		}
		two.stop(t)
		one.kill()
	})
}

// C60: the claim was made, and the connection died before its answer.
func TestAClaimWhoseAnswerWasLostIsFoundAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		insert(db, "k", 5)
		var lose atomic.Bool
		p := start(t, db, b, setup{name: "one", after: func(op string) error {
			if op == "claim" && lose.Swap(false) {
				return errDown
			}
			return nil
		}})
		until(t, time.Second, "drained", drained(db))
		lose.Store(true)
		db.Insert(outboxfake.Row{ID: "theirs", Key: "theirs", Status: outboxfake.Processing, ProcessingAt: time.Now().Add(-time.Second)})
		insert(db, "k", 3)
		until(t, 5*time.Second, "published", func() bool { return len(b.ids("k")) == 8 })
		if n := inversions(b); n != 0 || len(b.ids("")) != 8 {
			t.Fatalf("%d deliveries of 8, %d inversions", len(b.ids("")), n)
		}
		if r := db.Row("theirs"); r.Status != outboxfake.Processing {
			t.Fatalf("a foreign poller's claim is %+v", r)
		}
		p.stop(t)
	})
}

func TestAReclaimedRowNeverPassesOneThatIsLocked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		var ids []string
		for i := range 4 {
			ids = append(ids, fmt.Sprint("k", i))
			db.Insert(outboxfake.Row{ID: ids[i], Key: "k", Attempts: 1, Locked: i == 1})
		}
		p := start(t, db, b, setup{name: "one"})
		time.Sleep(10 * time.Second)
		equal(t, b.ids("k"), ids[:1])
		db.Set("k1", func(r *outboxfake.Row) { r.Locked = false })
		until(t, 10*time.Second, "drained", drained(db))
		equal(t, b.ids("k"), ids)
		p.stop(t)
	})
}

// Where a claim is a lock, a row that came back stays locked as long as the broker is
// awaited for others of its claim.
func TestARowThatIsLockedByItsOwnClaimIsNotTakenForDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		b.missing["late"] = true
		db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
		insert(db, "slow", 10)
		p := start(t, db, b, setup{name: "one", kind: outboxfake.Debezium, opt: outbox.Options{Batch: 20, InFlight: 100}, delay: func() time.Duration { return 3 * time.Second }})
		time.Sleep(5 * time.Second)
		b.change(func(b *broker) { delete(b.missing, "late") })
		insert(db, "k", 1)
		until(t, 5*time.Minute, "drained", drained(db))
		equal(t, b.ids("k"), []string{"k1", "r000012"})
		p.stop(t)
	})
}
