package reorder

import "github.com/walrelay/walrelay/hlc"

// inversionBits: 65 536 keys are remembered, 1 MiB.
const inversionBits = 16

// Inversions notices stamps that go back within a key, where events are not put in the order
// of stamps: a clock that went back, or a producer that does not observe what it reacts to. It
// remembers the greatest stamp of some keys in a table of fixed size; a key that takes
// the entry of another one makes it forgotten, so that the count is never too large, short of
// two keys with one hash. The zero value is ready, and takes no memory until Note is called.
// Not safe for concurrent use.
type Inversions struct {
	entries []lastStamp
	bits    uint // 0: inversionBits
}

type lastStamp struct {
	key   uint64
	stamp hlc.Stamp
}

// Note takes the next event of a key (a hash of it) and reports whether its stamp is
// below an earlier one.
func (v *Inversions) Note(key uint64, stamp hlc.Stamp) bool {
	if v.entries == nil {
		if v.bits == 0 {
			v.bits = inversionBits
		}
		v.entries = make([]lastStamp, 1<<v.bits)
	}
	e := &v.entries[key&uint64(len(v.entries)-1)]
	if e.key != key {
		*e = lastStamp{key: key, stamp: stamp}
		return false
	}
	if stamp < e.stamp {
		return true
	}
	e.stamp = stamp
	return false
}

// Reset forgets all keys: events are read anew.
func (v *Inversions) Reset() { clear(v.entries) }
