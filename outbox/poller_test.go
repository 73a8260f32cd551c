package outbox_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

func TestEveryRowIsPublishedOnceAndMarked(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]outbox.Traits{
		"row": outboxfake.ForzeRow, "lease": outboxfake.ForzeLease, "basic": outboxfake.Basic,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, b := outboxfake.NewDB(), newBroker()
				for range 300 {
					for _, k := range []string{"a", "b", "", "c"} {
						db.Insert(outboxfake.Row{Key: k})
					}
				}
				p := start(t, db, b, setup{name: "one", kind: kind, delay: jitter(5 * time.Millisecond), opt: outbox.Options{Batch: 50, InFlight: 120}})
				until(t, time.Minute, "drained", drained(db))
				p.stop(t)
				ids := b.ids("")
				if len(ids) != 1200 || inversions(b) != 0 {
					t.Fatalf("%d deliveries of 1200, %d inversions", len(ids), inversions(b))
				}
				if n := p.n.lost.Load() + p.n.released.Load(); n != 0 {
					t.Fatalf("%d outcomes lost or released", n)
				}
				slices.Sort(ids)
				if len(slices.Compact(ids)) != 1200 {
					t.Fatal("something came twice")
				}
			})
		})
	}
}

// B10: two failures per row, then published: attempts=2. And hold-back (C55).
func TestAFailingRowHoldsItsKeyAndOthersFlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		b.missing["late"] = true
		db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
		db.Insert(outboxfake.Row{ID: "k2", Key: "k"})
		db.Insert(outboxfake.Row{ID: "k3", Key: "k"})
		db.Insert(outboxfake.Row{ID: "o1", Key: "o"})
		p := start(t, db, b, setup{name: "one"})
		until(t, time.Second, "other keys flow", func() bool { return len(b.ids("o")) == 1 })
		began := time.Now()
		until(t, time.Minute, "second attempt failed", func() bool { return db.Row("k1").Attempts == 2 })
		if took := time.Since(began); took < 400*time.Millisecond || took > 1200*time.Millisecond {
			t.Errorf("the second attempt came after %v, want [0.5 s, 1 s]", took)
		}
		if n := len(b.ids("k")); n != 0 {
			t.Fatalf("%d rows passed the failing one", n)
		}
		if r := db.Row("k2"); r.Attempts != 0 || r.Status != outboxfake.Pending {
			t.Fatalf("a row behind the failing one is %+v", r)
		}
		b.change(func(b *broker) { delete(b.missing, "late") })
		until(t, time.Minute, "drained", drained(db))
		equal(t, b.ids("k"), []string{"k1", "k2", "k3"})
		if r := db.Row("k1"); r.Attempts != 2 || r.Status != outboxfake.Published || r.Error != "" {
			t.Fatalf("k1 is %+v", r)
		}
		p.stop(t)
	})
}

// B11: always failing, at most 2: failed, attempts=1, error kept.
func TestExhaustedAttemptsFailWithTheirError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		b.missing["late"] = true
		db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
		db.Insert(outboxfake.Row{ID: "k2", Key: "k"})
		p := start(t, db, b, setup{name: "one", noPark: true, opt: outbox.Options{Attempts: 2}})
		until(t, time.Minute, "drained", drained(db))
		if r := db.Row("k1"); r.Attempts != 1 || r.Status != outboxfake.Failed || r.Error == "" {
			t.Fatalf("k1 is %+v", r)
		}
		equal(t, b.ids(""), []string{"k2"}) // given up: the key goes on
		p.stop(t)
	})
}

func TestExhaustedAttemptsArePark(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]outbox.Traits{"row": outboxfake.ForzeRow, "basic": outboxfake.Basic} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { parkAndRetry(t, kind) })
		})
	}
}

func parkAndRetry(t *testing.T, kind outbox.Traits) {
	db, b := outboxfake.NewDB(), newBroker()
	gate := outbox.NewGate()
	b.missing["late"] = true
	db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
	db.Insert(outboxfake.Row{ID: "k2", Key: "k"})
	p := start(t, db, b, setup{name: "one", kind: kind, gate: gate, opt: outbox.Options{Attempts: 3}})
	park := &outboxfake.Parking{DB: db, Kind: kind}
	var list []outbox.Parked
	until(t, time.Minute, "parked", func() bool {
		list, _ = park.List(t.Context(), outbox.ParkedFilter{})
		return len(list) == 1
	})
	if list[0].Reason != "attempts" || list[0].Key != "k" || list[0].Row != "k1" || list[0].EventID != "ek1" {
		t.Fatalf("parked %+v", list[0])
	}
	db.Insert(outboxfake.Row{ID: "k3", Key: "k"})
	time.Sleep(30 * time.Second)
	if len(b.ids("")) != 0 || gate.Len() != 1 {
		t.Fatalf("a held key let %v pass", b.ids(""))
	}
	b.change(func(b *broker) { delete(b.missing, "late") })
	if n, _ := park.Retry(t.Context(), []int64{list[0].ID}); n != 1 {
		t.Fatal("not told to retry")
	}
	until(t, 15*time.Second, "all delivered", func() bool { return len(b.ids("k")) == 3 })
	equal(t, b.ids("k"), []string{"k1", "k2", "k3"})
	until(t, 15*time.Second, "the key is free", func() bool { return gate.Len() == 0 })
	p.stop(t)
}

func TestPoisonInTheMiddleHoldsItsKeyOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		var k, o []string
		for range 40 {
			k = append(k, insert(db, "k", 1)...)
			o = append(o, insert(db, "o", 1)...)
		}
		b.poison[k[20]] = true
		p := start(t, db, b, setup{name: "one", delay: jitter(3 * time.Millisecond)})
		until(t, time.Minute, "the other key", func() bool { return len(b.ids("o")) == 40 })
		time.Sleep(10 * time.Second)
		equal(t, b.ids("k"), k[:20])
		equal(t, b.ids("o"), o)
		if r := db.Row(k[20]); r.Status != outboxfake.Failed || r.Attempts != 0 {
			t.Fatalf("the poison row is %+v", r)
		}
		b.change(func(b *broker) { delete(b.poison, k[20]) })
		park := &outboxfake.Parking{DB: db, Kind: outboxfake.ForzeRow}
		if n, _ := park.Retry(t.Context(), []int64{1}); n != 1 {
			t.Fatal("not told to retry")
		}
		until(t, 20*time.Second, "all delivered", func() bool { return len(b.ids("k")) == 40 })
		equal(t, b.ids("k"), k)
		p.stop(t)
	})
}
