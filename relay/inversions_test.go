package relay

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/walrelay/walrelay/event"
)

func TestStampsThatGoBackWithinAKeyAreCountedInCommitOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		g := sortFrom(nil, Observer{}, event.ByCommit, &sink{}, d)
		d.commit("a", "b")
		synctest.Wait()
		if _, stamped := g.Inversions(0); stamped {
			t.Error("a stamp was seen where there is none")
		}
		d.commit("a@1000", "b@900", "a@950", "a@960", "b@901", "c@1")
		g.want(t, "a b a@1000 b@900 a@950 a@960 b@901 c@1")
		if n, stamped := g.Inversions(0); n != 2 || !stamped {
			t.Errorf("%d inversions (a stamp was seen: %v), want 2", n, stamped)
		}
		g.end(t, d)
	})
}

// What a session reads again has been seen before: it is no fault of the producers.
func TestWhatIsReadAgainIsNoInversion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDatabase()
		g := sortFrom(nil, Observer{}, event.ByCommit, &sink{}, d)
		d.commit("a@1000", "a@1001")
		synctest.Wait()
		next := make(chan struct{})
		d.set(func() { turn := d.turn; d.turn = next; close(turn) })
		sleep(2000)
		d.commit("a@1000", "a@1001")
		g.want(t, "a@1000 a@1001 a@1000 a@1001")
		if n, _ := g.Inversions(0); n != 0 {
			t.Errorf("%d inversions, want none", n)
		}
		g.end(t, d)
	})
}

// What an event in commit order pays for having a stamp.
func BenchmarkInversions(b *testing.B) {
	var v inversions
	recs := make([]event.Record, 1<<14)
	for i := range recs {
		recs[i] = event.Record{Topic: "shop.orders", Key: fmt.Appendf(nil, "order-%08d", i)}
	}
	stamp := []byte("111411200000000003")
	i := 0
	for b.Loop() {
		i++
		v.note(&recs[i&(len(recs)-1)], stamp)
	}
}
