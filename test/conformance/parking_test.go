package conformance

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/walrelay/walrelay/outbox"
)

const tooLarge = "it has 2 bytes, the limit is 1"

func TestParkedRowFailsWithItsReasonAndComesBackWhenTold(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 6, 3)
		y.change(fields{"status": "processing", "processing_at": moment(0), "attempts": 3}, 2)
		y.change(fields{"status": "published", "published_at": moment(0)}, 3)
		y.change(fields{"available_at": moment(0)}, 1)
		y.park(y.parked(1, "k1"), y.parked(2, "k2"), y.parked(3, "k0"))
		y.wantRow(1, "failed attempts=0 due error="+tooLarge)
		y.wantRow(2, "failed attempts=3 error="+tooLarge)
		y.wantRow(3, "published attempts=0 published_at") // delivered by somebody: there is nothing to put aside
		y.wantRow(4, "pending attempts=0")
		y.wantEntries("e1:k1:parked:row e2:k2:parked:row")
		y.park(y.parked(1, "k1")) // again, as after a crash
		y.park(asRead(y.parked(1, "k1")))
		y.wantEntries("e1:k1:parked:row e2:k2:parked:row")
		y.wantHeld(outbox.HeldKey{Key: "k1", Parked: true}, outbox.HeldKey{Key: "k2", Parked: true})

		y.retry(1, "e2")
		y.wantRow(2, "pending attempts=0")
		y.wantRow(1, "failed attempts=0 due error="+tooLarge)
		y.wantHeld(outbox.HeldKey{Key: "k1", Parked: true}, outbox.HeldKey{Key: "k2", Heads: y.ids(2)})
		y.retry(0, "e2") // it is on its way
		y.retry(1, "e1")
		y.wantRow(1, "pending attempts=0")

		y.park(y.parked(2, "k2")) // it is refused once more
		y.wantEntries("e1:k1:retrying:row e2:k2:parked:row")
		y.wantRow(2, "failed attempts=0 error="+tooLarge)

		y.mark(outbox.Mark{ID: y.id(1)}) // and this one arrives
		y.wantHeld(outbox.HeldKey{Key: "k2", Parked: true})
		y.wantEntries("e2:k2:parked:row")
		y.drop(1, "e2")
		y.wantRow(2, "failed attempts=0 error="+tooLarge)
		y.wantHeld()
		y.wantEntries("")
	})
}

func TestHeldKeysOutliveTheProcess(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 2, 2)
		y.park(y.parked(1, "k1"), y.message(3, "m"))
		y.leave(y.message(4, "m"))
		next := y.another(options{})
		next.wantHeld(outbox.HeldKey{Key: "k1", Parked: true}, outbox.HeldKey{Key: "m", Parked: true})
		next.retry(1, "e3")
		next.wantWhole("e3 e4")
	})
}

func TestDroppedEventDoesNotComeBackAlthoughItWasToldToGo(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 2, 2)
		y.park(y.parked(1, "k1"), y.message(5, "m"))
		y.retry(2, "e1", "e5")
		y.drop(2, "e1", "e5")
		y.wantRow(1, "failed attempts=0 error=dropped by an operator")
		y.wantEntries("")
		y.wantWhole("")
	})
}

// What others do to the rows is seen.
func TestEntriesFollowTheirRows(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 5, 10)
		for n := 1; n <= 5; n++ {
			y.park(y.parked(n, fmt.Sprint("k", n)))
		}
		y.change(fields{"status": "pending", "last_error": nil}, 1)
		y.change(fields{"status": "processing"}, 2)
		y.change(fields{"status": "published"}, 3)
		y.remove(t, 4)
		y.wantHeld(outbox.HeldKey{Key: "k1", Heads: y.ids(1)}, outbox.HeldKey{Key: "k2", Heads: y.ids(2)}, outbox.HeldKey{Key: "k5", Parked: true})
		y.wantEntries("e1:k1:retrying:row e2:k2:retrying:row e5:k5:parked:row")
		y.change(fields{"status": "failed", "last_error": "a poller of theirs"}, 2)
		y.wantHeld(outbox.HeldKey{Key: "k1", Heads: y.ids(1)}, outbox.HeldKey{Key: "k2", Parked: true}, outbox.HeldKey{Key: "k5", Parked: true})
		if p, err := y.k.Show(y.ctx(), y.find("e2")); err != nil || p.Error != "a poller of theirs" || p.Record != nil || p.Whole {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

func TestAnotherOwnersEntriesAreNotSeen(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 1, 1)
		y.park(y.parked(1, "k1"), y.message(2, "m"))
		other := y.another(options{owner: "shop/other"})
		other.wantHeld()
		other.wantEntries("")
		id := y.find("e1")
		if p, err := other.k.Show(y.ctx(), id); p != nil || err != nil {
			t.Errorf("another owner was shown %+v, %v", p, err)
		}
		if n, err := other.k.Drop(y.ctx(), []int64{id}); err != nil || n != 0 {
			t.Errorf("another owner dropped %d, %v", n, err)
		}
		if n, err := other.k.Retry(y.ctx(), []int64{id}); err != nil || n != 0 {
			t.Errorf("another owner retried %d, %v", n, err)
		}
		if err := other.k.Done(y.ctx(), []int64{y.find("e2")}); err != nil {
			t.Fatal(err)
		}
		y.wantEntries("e1:k1:parked:row e2:m:parked:whole")
	})
}

func TestParkedEventsAreCountedByStateAndForThisSourceAlone(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.park(y.message(1, "a"), y.message(2, "b"), y.message(3, "c"))
		y.leave(y.message(4, "a"))
		y.retry(1, "e3")
		y.another(options{owner: "shop/other"}).park(y.message(5, "a"))
		got, err := y.k.Counts(y.ctx())
		want := map[outbox.ParkState]int64{outbox.StateParked: 2, outbox.StateBehind: 1, outbox.StateRetrying: 1}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%v %v, want %v", got, err, want)
		}
	})
}

func TestAListIsNarrowedAndPaged(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		for n := 1; n <= 5; n++ {
			p := y.message(n, fmt.Sprint("k", n%2))
			p.Route = fmt.Sprint("r", n%3)
			y.park(p)
		}
		y.leave(y.message(6, "k0"))
		list := func(f outbox.ParkedFilter, want ...int) (last int64) {
			t.Helper()
			got, err := y.k.List(y.ctx(), f)
			if err != nil {
				t.Fatal(err)
			}
			var names, wanted []string
			for _, p := range got {
				names, last = append(names, p.EventID), p.ID
			}
			for _, n := range want {
				wanted = append(wanted, fmt.Sprint("e", n))
			}
			if fmt.Sprint(names) != fmt.Sprint(wanted) {
				t.Fatalf("%+v lists %v, want %v", f, names, wanted)
			}
			return last
		}
		list(outbox.ParkedFilter{Key: "k1"}, 1, 3, 5)
		list(outbox.ParkedFilter{Route: "r1"}, 1, 4)
		list(outbox.ParkedFilter{Key: "k1", Route: "r0"}, 3)
		list(outbox.ParkedFilter{State: outbox.StateBehind}, 6)
		list(outbox.ParkedFilter{EventID: "e2"}, 2)
		last := list(outbox.ParkedFilter{Limit: 2}, 1, 2)
		list(outbox.ParkedFilter{Limit: 3, After: last}, 3, 4, 5)
	})
}

// Feeds of one source park beside each other, and an operator beside them.
func TestThoseWhoParkAtOnceLoseNothing(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 8, 8)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for n := 1; n <= 8; n++ {
					for _, p := range []outbox.Parked{y.parked(n, fmt.Sprint("k", n)), y.message(100+n, "m"), y.message(1000*(w+1)+n, "own")} {
						if err := y.k.Park(y.ctx(), p); err != nil {
							t.Error(err)
						}
					}
					if _, err := y.k.Held(y.ctx()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		list, err := y.k.List(y.ctx(), outbox.ParkedFilter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		seen, count := map[string]int{}, map[bool]int{}
		for _, p := range list {
			seen[p.EventID]++
			count[p.Whole]++
		}
		if len(seen) != len(list) || count[false] != 8 || count[true] != 8+32 {
			t.Fatalf("%d entries of %d events, %v", len(list), len(seen), count)
		}
	})
}
