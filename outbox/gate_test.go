package outbox

import (
	"fmt"
	"sync"
	"testing"
)

func TestKeyIsNotOpenedWhileSomethingWasLeftBehindIt(t *testing.T) {
	t.Parallel()
	g := NewGate()
	if g.Held([]byte("k")) {
		t.Fatal("an empty gate holds a key")
	}
	g.Hold("k")
	g.LeftBehind("k", "1")
	if g.Open("k") || !g.Held([]byte("k")) {
		t.Fatal("the key was opened although event 1 waits behind it")
	}
	g.Delivered("k", "1")
	if !g.Open("k") || g.Held([]byte("k")) || g.Len() != 0 {
		t.Fatal("the key stays held although nothing holds it")
	}
	if g.Held([]byte("other")) {
		t.Fatal("another key is held")
	}
}

// The one that asks and the one that opens run at the same time: an event that
// was told to wait must find its key held until it is delivered.
func TestEventToldToWaitIsNeverPassed(t *testing.T) {
	t.Parallel()
	for round := range 200 {
		g := NewGate()
		g.Hold("k")
		var wg sync.WaitGroup
		left := make(chan string, 1)
		wg.Go(func() {
			if g.Held([]byte("k")) {
				g.LeftBehind("k", "1")
				left <- "1"
			}
			close(left)
		})
		wg.Go(func() { g.Open("k") })
		wg.Wait()
		if id, waits := <-left; waits && (!g.Held([]byte("k")) || g.Open("k")) {
			t.Fatalf("round %d: event %s waits behind a key that is open", round, id)
		}
	}
}

func TestOpenKeysCostNoLock(t *testing.T) {
	g := NewGate()
	key := []byte("k")
	if n := testing.AllocsPerRun(100, func() { g.Held(key) }); n != 0 {
		t.Fatalf("%v allocations to ask an open gate", n)
	}
	for i := range 1000 {
		g.Hold(fmt.Sprint(i))
	}
	if n := testing.AllocsPerRun(100, func() { g.Held(key) }); n != 0 {
		t.Fatalf("%v allocations to ask a gate that holds keys", n)
	}
	if len(g.Keys()) != 1000 || g.Len() != 1000 {
		t.Fatalf("%d and %d keys, want 1000", len(g.Keys()), g.Len())
	}
}

// The store is asked, and answers, some time after the key is held: who looks at it
// meanwhile finds nothing, and must not take that for an answer.
func TestKeyIsNotOpenedByALookThatIsOlderThanWhatHoldsIt(t *testing.T) {
	t.Parallel()
	g := NewGate()
	look := g.Now()
	answered := g.PutAside("k")
	if g.Open("k") || g.OpenAsOf("k", g.Now()) {
		t.Fatal("the key was opened while an event of it is being put aside")
	}
	between := g.Now()
	answered()
	for _, old := range []uint64{look, between} {
		if g.OpenAsOf("k", old) || !g.Held([]byte("k")) {
			t.Fatal("the key was opened by a look that began before the store had the event")
		}
	}
	if !g.OpenAsOf("k", g.Now()) || g.Held([]byte("k")) {
		t.Fatal("the key stays held although a look at the store found nothing against it")
	}
}

func TestWhatWasLeftBehindIsForgottenOnlyOnceTheDatabaseHadIt(t *testing.T) {
	t.Parallel()
	g := NewGate()
	g.Hold("k")
	g.LeftBehind("k", "early")
	g.InPlace("k", "early")
	g.LeftBehind("k", "not seen")
	then := g.Now()
	g.LeftBehind("k", "late")
	g.InPlace("k", "late")
	g.NothingPending("k", then)
	if g.Delivered("k", "late"); g.Open("k") {
		t.Fatal("the key was opened although an event waits that nobody could have seen")
	}
	g.InPlace("k", "not seen")
	g.NothingPending("k", then)
	if g.Open("k") {
		t.Fatal("the key was opened although an event came into its place after the look")
	}
	g.NothingPending("k", g.Now())
	if !g.Open("k") {
		t.Fatal("the key stays held although nothing was found of it")
	}
}
