package reorder

import (
	"strings"
	"time"

	"github.com/walrelay/walrelay/hlc"
)

// DefaultMaxDrift is how far a stamp may be beyond the time of its commit. It is what
// clocks of the forze contract accept from each other (hlc.DefaultMaxDrift), so a stamp
// further ahead is a fault or a forgery.
const DefaultMaxDrift = hlc.DefaultMaxDrift

// Found is what Add and Pop noticed about an item; several may hold at once. Zero: it
// was on time and stands at its own stamp.
type Found uint8

// What can be found.
const (
	// Late: the stamp is below one that was already released. A bound of the source is
	// not true, or the source was detached, or order was given up for memory.
	Late Found = 1 << iota
	// Future: the stamp is more than the allowed drift beyond the commit; placed by commit time.
	Future
	// Unstamped: no stamp; placed by commit time.
	Unstamped
	// Raised: placed behind an earlier item of its source and key with a greater stamp.
	Raised
	// Conflict: a raised item went out behind an item of its key from another source whose
	// stamp is greater than its own. Known when the item goes out.
	Conflict
	// Early: went out before the watermark, for memory. Known when the item goes out.
	Early
)

var foundNames = [...]string{"late", "future", "unstamped", "raised", "conflict", "early"}

// Has reports whether all of g were found.
func (f Found) Has(g Found) bool { return f&g == g }

func (f Found) String() string {
	var names []string
	for i, name := range foundNames {
		if f.Has(1 << i) {
			names = append(names, name)
		}
	}
	if names == nil {
		return "on time"
	}
	return strings.Join(names, ", ")
}

// atMicros is the least stamp of a time: pack(milliseconds, 0), within what a stamp can hold.
func atMicros(micros int64) hlc.Stamp {
	s, _ := hlc.Pack(min(max(micros/1000, 0), hlc.MaxPhysical), 0)
	return s
}

// effective is the stamp that an item is ordered by, before its key is looked at.
func effective(stamp hlc.Stamp, stamped bool, commitMicros int64, drift time.Duration) (hlc.Stamp, Found) {
	switch {
	case !stamped:
		return atMicros(commitMicros), Unstamped
	case stamp.PhysicalMillis() > commitMicros/1000+drift.Milliseconds():
		return atMicros(commitMicros), Future
	default:
		return stamp, 0
	}
}
