package outbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// logPath is the log side of a source as the sweep sees it: it delivers rows in the
// order of the log, puts poison aside, leaves behind what is held, marks, and then says
// how far it is.
type logPath struct {
	b     *broker
	table *outboxfake.Table
	park  *outboxfake.Parking
	gate  *outbox.Gate
	lag   func() time.Duration

	mu     sync.Mutex
	queue  []outboxfake.Row
	ends   []event.LSN
	passed event.LSN
	news   chan struct{}
}

func newLogPath(db *outboxfake.DB, b *broker, gate *outbox.Gate, lag func() time.Duration) *logPath {
	return &logPath{
		b: b, table: &outboxfake.Table{DB: db, Kind: outboxfake.ForzeRow}, park: &outboxfake.Parking{DB: db, Kind: outboxfake.ForzeRow},
		gate: gate, lag: lag, news: make(chan struct{}, 1),
	}
}

// insert writes a row that the log brings, if it is pending and due.
func (l *logPath) insert(r outboxfake.Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := l.table.Insert(r)
	l.queue, l.ends = append(l.queue, r), append(l.ends, end)
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *logPath) run(ctx context.Context) {
	for ctx.Err() == nil {
		l.mu.Lock()
		var r outboxfake.Row
		var end event.LSN
		if len(l.queue) > 0 {
			r, end = l.queue[0], l.ends[0]
		}
		l.mu.Unlock()
		if end == 0 {
			l.mu.Lock()
			if len(l.queue) == 0 {
				l.passed = max(l.passed, l.table.End(), 1) // a keepalive
			}
			l.mu.Unlock()
			select {
			case <-l.news:
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		time.Sleep(l.lag())
		l.deliver(&r)
		l.mu.Lock()
		l.queue, l.ends = l.queue[1:], l.ends[1:]
		l.passed = end
		l.mu.Unlock()
	}
}

func (l *logPath) deliver(r *outboxfake.Row) {
	parked := outbox.Parked{Relation: "public.outbox", Row: r.ID, EventID: r.EventID, Key: r.Key, Route: r.Route, Reason: "too_large", Error: "too large"}
	l.b.mu.Lock()
	poison := l.b.poison[r.ID]
	l.b.mu.Unlock()
	switch {
	case r.Available.After(time.Now()):
		return // the sweep's
	case l.gate.Held([]byte(r.Key)):
		l.gate.LeftBehind(r.Key, r.ID)
		_ = l.park.LeaveBehind(context.Background(), parked)
		l.gate.InPlace(r.Key, r.ID)
		return
	case poison:
		defer l.gate.PutAside(r.Key)()
		time.Sleep(l.lag())
		_ = l.park.Park(context.Background(), parked)
		return
	}
	l.b.change(func(b *broker) { b.log = append(b.log, delivery{r.Key, r.ID, time.Now(), "the log"}) })
	time.Sleep(l.lag())
	if _, err := l.table.Mark(context.Background(), []outbox.Mark{{ID: r.ID}}); err != nil {
		panic(err)
	}
}

func (l *logPath) waitPassed(ctx context.Context, at event.Position) error {
	for {
		l.mu.Lock()
		passed := l.passed
		l.mu.Unlock()
		if event.AtLSN(passed).Compare(at) >= 0 {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *logPath) gear() outbox.Gear {
	return outbox.Gear{Kind: outbox.GearSweep, Delivered: l.waitPassed}
}

// The race of the sweep against the log path, by seeds: what the log delivers is
// never delivered by the sweep, nothing comes early, nothing of a key passes.
func TestTheSweepNeverDeliversWhatTheLogDelivers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { raceTheLog(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func raceTheLog(t *testing.T, r *rand.Rand) {
	db, b, gate := outboxfake.NewDB(), newBroker(), outbox.NewGate()
	for i := range 20 { // older than the slot
		db.Insert(outboxfake.Row{ID: fmt.Sprintf("a%05d", i), EventID: fmt.Sprintf("a%05d", i), Key: fmt.Sprint("old", i%3)})
	}
	log := newLogPath(db, b, gate, jitter(20*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { log.run(ctx) })
	p := start(t, db, b, setup{
		name: "one", gate: gate, gear: log.gear(), delay: jitter(10 * time.Millisecond),
		opt: outbox.Options{SweepEvery: 200 * time.Millisecond, Batch: 7},
	})
	due := map[string]time.Time{}
	park := &outboxfake.Parking{DB: db, Kind: outboxfake.ForzeRow}
	for i := range 400 {
		id := fmt.Sprintf("r%05d", i)
		row := outboxfake.Row{ID: id, EventID: id, Key: fmt.Sprint("k", r.IntN(8)), Route: "orders"}
		switch r.IntN(20) {
		case 0:
			b.change(func(b *broker) { b.poison[id] = true })
		case 1:
			row.Key = id // nothing else is of its key: it may come late
			row.Available = time.Now().Add(time.Duration(r.IntN(int(3 * time.Second))))
			due[id] = row.Available
		}
		log.insert(row)
		time.Sleep(time.Duration(r.IntN(int(30 * time.Millisecond))))
		if r.IntN(10) == 0 {
			list, _ := park.List(ctx, outbox.ParkedFilter{State: outbox.StateParked})
			for _, x := range list {
				b.change(func(b *broker) { delete(b.poison, x.Row) })
				_, _ = park.Retry(ctx, []int64{x.ID})
			}
		}
	}
	until(t, 10*time.Minute, "all is published", func() bool {
		list, _ := park.List(ctx, outbox.ParkedFilter{State: outbox.StateParked})
		for _, x := range list {
			b.change(func(b *broker) { delete(b.poison, x.Row) })
			_, _ = park.Retry(ctx, []int64{x.ID})
		}
		return db.Count(outboxfake.Published) == 420
	})
	until(t, time.Minute, "no key is held", func() bool { return gate.Len() == 0 })
	p.stop(t)
	cancel()
	wg.Wait()
	ids := b.ids("")
	slices.Sort(ids)
	if n := len(ids); n != 420 || len(slices.Compact(ids)) != n {
		t.Errorf("%d deliveries of 420 rows", n)
	}
	if n := inversions(b); n != 0 {
		t.Errorf("%d inversions", n)
	}
	for id, at := range due {
		if got := b.times(id); len(got) != 1 || got[0].Before(at) {
			t.Errorf("row %s, due at %v, came at %v", id, at, got)
		}
	}
}

func TestTheSweepLeavesShardsToTheRelayThatHasTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		standby := outbox.Gear{Kind: outbox.GearSweep, Delivered: func(ctx context.Context, _ event.Position) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		one := start(t, db, b, setup{name: "standby", gear: standby})
		time.Sleep(time.Minute)
		if held := db.Holders(); len(held) != 0 {
			t.Fatalf("a relay without the log holds %v", held)
		}
		gate := outbox.NewGate()
		log := newLogPath(db, b, gate, short)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { log.run(ctx) })
		two := start(t, db, b, setup{name: "active", gate: gate, gear: log.gear()})
		insert(db, "k", 3)
		until(t, time.Minute, "swept", drained(db))
		equal(t, b.ids("k"), []string{"r000001", "r000002", "r000003"})
		// The log stops; another relay gets it.
		cancel()
		wg.Wait()
		insert(db, "k", 1)
		until(t, 2*time.Minute, "the shards are let go", func() bool { return len(db.Holders()) == 0 })
		two.stop(t)
		one.stop(t)
	})
}

func TestWhatTheSweepFailsAtHoldsItsKeyInTheLogToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b, gate := outboxfake.NewDB(), newBroker(), outbox.NewGate()
		b.missing["late"] = true
		db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
		log := newLogPath(db, b, gate, short)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { log.run(ctx) })
		var slow atomic.Bool
		p := start(t, db, b, setup{name: "one", gate: gate, gear: log.gear(), slow: func(op string) {
			if op == "settle" && !slow.Swap(true) {
				time.Sleep(3 * time.Second)
			}
		}})
		until(t, time.Minute, "the sweep failed", slow.Load)
		log.insert(outboxfake.Row{ID: "k2", EventID: "k2", Key: "k"})
		if err := log.waitPassed(ctx, event.AtLSN(db.End())); err != nil {
			t.Fatal(err)
		}
		equal(t, b.ids("k"), nil)
		b.change(func(b *broker) { delete(b.missing, "late") })
		until(t, time.Minute, "both are delivered", func() bool { return len(b.ids("k")) == 2 })
		equal(t, b.ids("k"), []string{"k1", "k2"})
		until(t, time.Minute, "the key is free", func() bool { return gate.Len() == 0 })
		p.stop(t)
		cancel()
		wg.Wait()
	})
}

// More rows wait behind a key than a snapshot takes.
func TestRowsBehindHeldKeysNeverStarveTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b, gate := outboxfake.NewDB(), newBroker(), outbox.NewGate()
		park := &outboxfake.Parking{DB: db, Kind: outboxfake.ForzeRow}
		behind := insert(db, "k", 12_000)
		insert(db, "other", 1)
		_ = park.Park(t.Context(), outbox.Parked{Relation: "public.outbox", Row: behind[0], EventID: "e" + behind[0], Key: "k", Error: "too large"})
		gate.Hold("k")
		log := newLogPath(db, b, gate, short)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { log.run(ctx) })
		p := start(t, db, b, setup{name: "one", gate: gate, gear: log.gear(), delay: func() time.Duration { return 50 * time.Microsecond }})
		until(t, 20*time.Second, "the other key", func() bool { return len(b.ids("other")) == 1 })
		_, _ = park.Retry(ctx, []int64{1})
		until(t, time.Minute, "half of them", func() bool { return len(b.ids("k")) > 6_000 })
		log.insert(outboxfake.Row{ID: "last", EventID: "last", Key: "k"})
		until(t, 5*time.Minute, "those behind", func() bool { return len(b.ids("k")) == 12_001 })
		equal(t, b.ids("k"), append(behind, "last"))
		until(t, time.Minute, "the key is free", func() bool { return gate.Len() == 0 })
		p.stop(t)
		cancel()
		wg.Wait()
	})
}

// What the log left behind is published by somebody else, or deleted: nobody delivers it
// here, and its key must not wait for that.
func TestKeyComesFreeWhenSomebodyElseTookWhatWasLeftBehindIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b, gate := outboxfake.NewDB(), newBroker(), outbox.NewGate()
		foreign := func(status string) func(*outboxfake.Row) {
			return func(r *outboxfake.Row) { r.Status, r.ProcessingAt = status, time.Now() }
		}
		db.Insert(outboxfake.Row{ID: "k1", EventID: "k1", Key: "k"})
		db.Set("k1", foreign(outboxfake.Processing))
		log := newLogPath(db, b, gate, short)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { log.run(ctx) })
		p := start(t, db, b, setup{name: "one", gate: gate, gear: log.gear(), opt: outbox.Options{ReclaimAfter: time.Hour}})
		until(t, time.Minute, "the key is held", func() bool { return gate.Held([]byte("k")) })
		for _, id := range []string{"k2", "k3"} {
			log.insert(outboxfake.Row{ID: id, EventID: id, Key: "k"})
		}
		time.Sleep(10 * time.Second)
		equal(t, b.ids("k"), nil)
		for _, id := range []string{"k1", "k2"} {
			db.Set(id, foreign(outboxfake.Published))
		}
		db.Delete("k3")
		until(t, time.Minute, "the key is free", func() bool { return gate.Len() == 0 })
		log.insert(outboxfake.Row{ID: "k4", EventID: "k4", Key: "k"})
		until(t, time.Second, "the next one goes by the log", func() bool { return len(b.ids("k")) == 1 })
		equal(t, b.ids("k"), []string{"k4"})
		p.stop(t)
		cancel()
		wg.Wait()
	})
}
