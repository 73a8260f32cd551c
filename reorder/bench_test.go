package reorder

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/walrelay/walrelay/hlc"
)

const held = 100_000

// steady makes a buffer that holds many items, and a step that adds one and pops one, as
// a stream does: stamps rise, each within spread of its neighbours.
func steady(withinKey bool, spread int64) (step func()) {
	b := New[*int](2, 1<<40, 0)
	b.Attach(0)
	b.Attach(1)
	rng := rand.New(rand.NewPCG(1, 2))
	jitter := make([]int64, 1<<16)
	keys := make([]uint64, 1<<16)
	for i := range jitter {
		jitter[i] = rng.Int64N(spread)
		keys[i] = rng.Uint64() | 1
	}
	v := new(int)
	i := int64(1_700_000_000_000 << 4)
	add := func() {
		i++
		b.Add(Item[*int]{
			Source: int(i & 1), Stamp: hlc.Stamp((i + jitter[i&0xffff]) << 12), Stamped: true, CommitMicros: i >> 4 * 1000,
			Key: keys[(i*7)&0xffff], WithinKey: withinKey, Bytes: 500, Value: v,
		})
	}
	for range held {
		add()
	}
	return func() {
		add()
		b.Advance(0, hlc.Stamp((i-held)<<12))
		b.Advance(1, hlc.Stamp((i-held)<<12))
		for _, ok := b.Pop(); ok; _, ok = b.Pop() {
		}
	}
}

func TestAddAndPopMakeNoGarbage(t *testing.T) {
	for _, withinKey := range []bool{false, true} {
		step := steady(withinKey, 5000)
		for range held { // into the steady state
			step()
		}
		if n := testing.AllocsPerRun(10_000, step); n != 0 {
			t.Errorf("within key %t: %v allocations an item, want none", withinKey, n)
		}
	}
}

func BenchmarkAddAndPop(b *testing.B) {
	for _, withinKey := range []bool{false, true} {
		for _, spread := range []int64{1, 5000, 50_000} {
			b.Run(fmt.Sprintf("withinKey=%t/spread=%d", withinKey, spread), func(b *testing.B) {
				step := steady(withinKey, spread)
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
			})
		}
	}
}
