package reorder

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/hlc"
)

// The twin remembers every key; the table as many as fit, and finds nothing that the twin does not.
func TestInversionsFoundAreThoseOfTheTwinUnlessAKeyWasForgotten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := Inversions{bits: 3}
		keys := rapid.SampledFrom([]uint64{8, 20}).Draw(t, "keys")
		twin := map[uint64]hlc.Stamp{}
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			key := rapid.Uint64Range(0, keys-1).Draw(t, "key")
			stamp := hlc.Stamp(rapid.Uint64Range(1, 50).Draw(t, "stamp"))
			want := stamp < twin[key]
			got := table.Note(key, stamp)
			if got && !want {
				t.Fatalf("key %d stamp %d counts as an inversion, the greatest before was %d", key, stamp, twin[key])
			}
			if keys <= 8 && got != want {
				t.Fatalf("key %d stamp %d: %v, want %v", key, stamp, got, want)
			}
			twin[key] = max(twin[key], stamp)
		}
	})
}

func TestInversionsTakeNoMemoryUntilThereIsAStamp(t *testing.T) {
	t.Parallel()
	var v Inversions
	v.Reset()
	if v.entries != nil {
		t.Errorf("%d entries", len(v.entries))
	}
	v.Note(1, 5)
	v.Reset()
	if v.Note(1, 4) {
		t.Error("what was read before Reset is remembered")
	}
}

func BenchmarkInversions(b *testing.B) {
	var v Inversions
	n := uint64(0)
	for b.Loop() {
		n++
		v.Note(n*0x9e3779b97f4a7c15>>13, hlc.Stamp(n))
	}
}
