package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
)

func TestStampsDecideWhereCommitsOverlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		g := sortFrom(ordering(), Observer{}, event.ByStamp, &sink{}, d)
		sleep(1000)
		// b began and was stamped before a, and commits behind it.
		d.set(func() { d.oldest = epoch.Add(time.Second) })
		sleep(300)
		d.commit("a@1200", "c@1210")
		sleep(500)
		g.want(t, "")
		if _, live := d.state(); live != 0 {
			t.Error("what waits holds the memory of its batch")
		}
		d.commit("b@1100")
		d.set(func() { d.oldest = time.Time{} })
		sleep(400)
		g.want(t, "b@1100 a@1200 c@1210")
		g.end(t, d)
	})
}

func TestOneSourceWaitsForTheOther(t *testing.T) {
	t.Parallel()
	for _, within := range []event.Order{event.ByStamp, event.ByStampWithinCommit} {
		synctest.Test(t, func(t *testing.T) {
			a, b := newDatabase(), newDatabase()
			g := sortFrom(ordering(), Observer{}, within, &sink{}, a, b)
			sleep(1000)
			b.set(func() { b.end += 10 }) // b has something on its way, which lags
			a.commit("k@1000")
			sleep(700)
			g.want(t, "")
			if b.nudged == 0 {
				t.Error("the lagging source was not asked where it is")
			}
			b.set(func() { b.end -= 10 })
			b.commit("k@900")
			sleep(300)
			g.want(t, "k@900 k@1000")
			g.end(t, a, b)
		})
	}
}

func TestWithinAKeyCommitsDecideAndStampsBetweenSources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := newDatabase(), newDatabase()
		g := sortFrom(ordering(), Observer{}, event.ByStampWithinCommit, &sink{}, a, b)
		sleep(1000)
		a.commit("k@1000", "other@990", "k@950")
		b.commit("k@960")
		sleep(500)
		g.want(t, "k@960 other@990 k@1000 k@950")
		if f := g.OrderFigures(); f.Raised != 1 || f.Conflicts != 1 {
			t.Errorf("%+v", f)
		}
		g.end(t, a, b)
	})
}

func TestWhatHasNoUsableStampTakesThePlaceOfItsCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		g := sortFrom(ordering(), Observer{}, event.ByStamp, &sink{}, d)
		sleep(1000)
		d.commit("none", "future@9000000000", "b@1001", "poison@999", "a@998")
		sleep(500)
		g.want(t, "a@998 refused poison@999 none future@9000000000 b@1001")
		if f := g.OrderFigures(); f.Future != 1 || f.Unstamped != 1 || f.Late != 0 {
			t.Errorf("%+v", f)
		}
		g.end(t, d)
	})
}

func TestLateEventGoesAtOnceAndIsCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := ordering()
		o.LateHeader = true
		d := newDatabase()
		g := sortFrom(o, Observer{}, event.ByStamp, &sink{}, d)
		sleep(1000)
		d.commit("a@1000")
		sleep(500)
		d.commit("b@900")
		g.want(t, "a@1000 b@900 walrelay_late=1")
		if f := g.OrderFigures(); f.Late != 1 {
			t.Errorf("%+v", f)
		}
		g.end(t, d)
	})
}

func TestLateEventHaltsItsSourceWhereThatIsTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := ordering()
		o.HaltOnLate = true
		d := newDatabase()
		var why error
		g := sortFrom(o, Observer{Halted: func(_ string, err error) { why = err }}, event.ByStamp, &sink{}, d)
		sleep(1000)
		d.commit("a@1000")
		sleep(500)
		d.commit("b@900", "c@1600")
		sleep(100)
		g.want(t, "a@1000")
		var e *event.Error
		if !errors.As(why, &e) || e.Class != event.Halt || e.Remedy == "" {
			t.Errorf("halted with %v", why)
		}
		if confirmed, _ := d.state(); confirmed != 11 {
			t.Errorf("confirmed %s, and the late event was not published", confirmed)
		}
		g.stop()
		if err := <-g.err; err == nil {
			t.Error("an unfinished transaction was left without a word")
		}
		if _, live := d.state(); live != 0 {
			t.Errorf("%d batches keep their memory", live)
		}
	})
}

func TestSilentSourceHoldsTheOthersUntilItIsDetached(t *testing.T) {
	t.Parallel()
	for _, patience := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			o := ordering()
			o.StallAfter = patience
			var stalled []string
			var mu sync.Mutex
			a, b := newDatabase(), newDatabase()
			g := sortFrom(o, Observer{Stalled: func(name string, _ time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				stalled = append(stalled, name)
			}}, event.ByStamp, &sink{}, a, b)
			sleep(1000)
			b.set(func() { b.down = true })
			sleep(1000)
			a.commit("a@2000")
			sleep(3000)
			g.want(t, "")
			sleep(60_000)
			if patience == 0 {
				g.want(t, "")
			} else {
				g.want(t, "a@2000")
				b.set(func() { b.down = false })
				b.commit("b@1990")
				sleep(500)
				g.want(t, "a@2000 b@1990")
				if f := g.OrderFigures(); f.Late != 1 {
					t.Errorf("%+v", f)
				}
				a.commit("c@65500") // it counts again
				b.set(func() { b.down = true })
				sleep(1000)
				g.want(t, "a@2000 b@1990")
			}
			mu.Lock()
			if want := map[bool]string{true: "[]", false: "[db1]"}[patience == 0]; fmt.Sprint(stalled) != want {
				t.Errorf("detached %v, want %s", stalled, want)
			}
			mu.Unlock()
			b.set(func() { b.down = false })
			g.end(t, a, b)
		})
	}
}

// A transaction that stays open keeps the watermark in place for as long as Transaction
// says, and is no sign of a source that is gone.
func TestOpenTransactionIsWaitedForAsLongAsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		g := sortFrom(ordering(), Observer{Stalled: func(string, time.Duration) { t.Error("detached") }}, event.ByStamp, &sink{}, d)
		sleep(1000)
		d.set(func() { d.oldest = time.Now() })
		d.commit("a@1500")
		sleep(8000)
		g.want(t, "")
		sleep(5000) // τ - T - ε has passed it
		g.want(t, "a@1500")
		g.end(t, d)
	})
}

func TestTinyBuffersOfTwoSourcesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := ordering()
		o.BufferBytes = 3 * (overhead + 20)
		a, b := newDatabase(), newDatabase()
		g := sortFrom(o, Observer{}, event.ByStamp, &sink{}, a, b)
		sleep(1000)
		for i := range 200 {
			a.commit(fmt.Sprint("a@", 1000+2*i))
			b.commit(fmt.Sprint("b@", 1001+2*i))
		}
		sleep(20_000)
		synctest.Wait()
		if n := len(g.sink.log); n != 400 {
			t.Fatalf("%d of 400 came through", n)
		}
		g.end(t, a, b)
	})
}

// One that is alone and full cannot wait for itself: order gives way to memory, counted.
func TestFullBufferOfTheSourceThatAllWaitForLetsTheSmallestGo(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"buffer", "window"} {
		synctest.Test(t, func(t *testing.T) {
			o := ordering()
			if what == "buffer" {
				o.BufferBytes = 10 * (overhead + 20)
			}
			d := newDatabase()
			d.set(func() { d.oldest = epoch })
			g := sortFrom(o, Observer{}, event.ByStamp, &sink{}, d)
			sleep(1000)
			for i := range 300 {
				d.commit(fmt.Sprint("k@", 1000+i))
			}
			sleep(5000)
			synctest.Wait()
			if n := len(g.sink.log); n < 200 || n == 300 {
				t.Fatalf("%s: %d of 300 came through", what, n)
			}
			if f := g.OrderFigures(); f.Early == 0 || f.Late != 0 {
				t.Errorf("%s: %+v", what, f)
			}
			if !slices.IsSorted(g.sink.log) {
				t.Errorf("%s: out of order: %v", what, g.sink.log)
			}
			g.end(t, d)
		})
	}
}

func TestCleanStopPublishesWhatWaitsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := newDatabase(), newDatabase()
		g := sortFrom(ordering(), Observer{}, event.ByStamp, &sink{}, a, b)
		sleep(1000)
		a.commit("a@1000", "c@1002")
		b.commit("b@1001")
		synctest.Wait()
		g.want(t, "")
		g.end(t, a, b)
		g.want(t, "a@1000 b@1001 c@1002")
	})
}

func TestStopWithADeadBrokerSaysWhatWasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		g := sortFrom(ordering(), Observer{}, event.ByStamp, &sink{shut: make(chan struct{})}, d)
		sleep(1000)
		d.commit("a@1000", "b@1001")
		sleep(1000)
		d.commit("c@2000")
		synctest.Wait()
		g.stop()
		var e *event.Error
		if err := <-g.err; !errors.As(err, &e) || e.Fault != event.FaultUnacknowledged {
			t.Errorf("the end: %v", err)
		}
		if confirmed, live := d.state(); confirmed != 0 || live != 0 {
			t.Errorf("confirmed %s, %d batches keep their memory", confirmed, live)
		}
	})
}

// A source that changes the way it reads waits until all of its events are settled,
// which must not wait for what it alone could say.
func TestChangeOfGearLetsGoWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		d.set(func() { d.oldest = epoch })
		g := sortFrom(ordering(), Observer{}, event.ByStamp, &sink{}, d)
		sleep(1000)
		d.commit("a@1000")
		synctest.Wait()
		g.want(t, "")
		next := make(chan struct{})
		d.set(func() { turn := d.turn; d.turn = next; close(turn) })
		sleep(200)
		g.want(t, "a@1000")
		g.end(t, d)
	})
}

func TestRoutesWithoutTheOrderDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		g := sortFrom(ordering(), Observer{}, event.ByCommit, &sink{}, d)
		d.commit("a@1000", "b@900")
		g.want(t, "a@1000 b@900")
		g.end(t, d)
	})
}

// The end may be asked for before the releaser has noticed the last record.
func TestReleaserEndsOnceTheLastRecordHasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, pub := newDatabase(), &sink{}
		r := New(Options{Order: ordering()}, Observer{}, []Feed{{Name: "db", Router: stampRouter{event.ByStamp}, Reading: d.reading}})
		pub.result, r.pub = r.Result, pub
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rec := event.Record{Topic: "t", Key: []byte("a"), Value: []byte("a@1"), Order: event.ByStamp}
		f := r.feeds[0]
		f.entry, _ = f.window.Load().Open()
		f.window.Load().Add(f.entry, 1)
		f.underWay.Add(1)
		if err := r.sort.add(ctx, f, &event.Event{}, &rec, nil, event.Ticket{Memory: event.NewMemory(nil), Entry: f.entry}); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		close(stop)
		r.sort.release(ctx, stop)
		if pub.out() != "a@1" || ctx.Err() != nil {
			t.Errorf("published %q, and the end took %v", pub.out(), ctx.Err())
		}
	})
}
