package relay

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/reorder"
)

// inversions counts stamps that go back within a key in commit order. The feeder's, but for
// the count.
type inversions struct {
	table   reorder.Inversions
	topic   string      // of the event before
	mixed   uint64      // its hash
	stamped atomic.Bool // an event with a stamp came
	found   atomic.Int64
}

// keySeed is one for all: keys need not be compared over processes.
var keySeed = maphash.MakeSeed()

// keyOf is a hash of a record's topic and key; never zero.
func keyOf(rec *event.Record) uint64 {
	return max(1, maphash.Bytes(keySeed, rec.Key)^maphash.String(keySeed, rec.Topic))
}

func (v *inversions) note(rec *event.Record, digits []byte) {
	if len(rec.Key) == 0 || rec.Spread {
		return
	}
	stamp, err := hlc.ParsePacked(digits)
	if err != nil {
		return
	}
	if !v.stamped.Load() {
		v.stamped.Store(true)
	}
	if rec.Topic != v.topic {
		v.topic, v.mixed = rec.Topic, maphash.String(keySeed, rec.Topic)
	}
	if v.table.Note(max(1, maphash.Bytes(keySeed, rec.Key)^v.mixed), stamp) {
		v.found.Add(1)
	}
}

// Inversions counts events of a feed in commit order whose stamp is below an earlier one
// of their key; stamped: there was an event with a stamp in commit order.
func (r *Relay) Inversions(source int) (n int64, stamped bool) {
	v := &r.feeds[source].inversions
	return v.found.Load(), v.stamped.Load()
}
