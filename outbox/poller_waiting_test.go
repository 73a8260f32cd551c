package outbox

import (
	"testing"

	"pgregory.net/rapid"
)

// A map is the obvious way to keep what waits for its result.
func TestWaitingIsWhatAMapWouldBe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var w waiting
		want, next := map[uint64]*entry{}, uint64(0)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				e := &entry{}
				if w.next() != next {
					t.Fatalf("the next number is %d, want %d", w.next(), next)
				}
				w.add(e)
				want[next] = e
				next++
				continue
			}
			n := rapid.Uint64Range(0, next+1).Draw(t, "number")
			if w.get(n) != want[n] || w.take(n) != want[n] {
				t.Fatalf("number %d is not what was added", n)
			}
			delete(want, n)
		}
		for n := range next + 1 {
			if w.get(n) != want[n] {
				t.Fatalf("number %d is not what was added", n)
			}
		}
	})
}
