package simulation

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/walrelay/walrelay/hlc"
)

const (
	replicas = 3
	sources  = 2
	keys     = 12
	start    = int64(1_700_000_000_000_000) // microseconds
	millis   = int64(1000)
)

// Kind is why one event is the cause of another.
type Kind byte

// The channels that causes travel by.
const (
	Flow    Kind = 'P' // the same flow of execution, perhaps through both databases
	Message Kind = 'M' // the effect was staged by a handler of the cause
	Data    Kind = 'D' // the effect's transaction read what the cause's had committed
)

// Edge leads from a cause to its effect, both indexes of World.Events.
type Edge struct {
	Kind          Kind
	Cause, Effect int
}

// Event is one outbox row.
type Event struct {
	Replica, Source, Key, Tx int
	Stamp                    hlc.Stamp
	Staged                   int64 // true time, microseconds
}

// Tx is one transaction.
type Tx struct {
	Source int
	// Begun and Ended are true times.
	Begun, Ended int64
	// Written is when its commit's record got into the log, true time; zero: rolled back.
	Written int64
	// Committed is the time in the record, by the server's clock; taken a while before.
	Committed int64
	Events    []int
	Position  int // of the commit's end in the source's log, from 1
}

// Options of a world. The bounds are true: nothing that happens exceeds them.
type Options struct {
	Seed uint64
	// Skew is how far clocks of replicas may be off, to either side.
	Skew time.Duration
	// Transaction, Staged: see reorder.Bounds.
	Transaction, Staged time.Duration
	Flows               int
	// Twins that are broken.
	NoMerge bool // consumers do not merge the stamps of what they handle
	RawWall bool // stamps are the wall clock
}

// World is what happened.
type World struct {
	Options
	Events []Event
	Txs    []Tx
	Logs   [sources][]int // transactions in the order of their commits
	Edges  []Edge
	// Ahead counts merges that pushed a replica's clock beyond its wall clock and all it
	// had issued: without them nothing here would depend on merging.
	Ahead int
	// End is when the last commit was written.
	End int64

	rng    *rand.Rand
	agenda agenda
	wall   [replicas]func() int64
	clock  [replicas]*hlc.Clock
	server [sources]int64 // offset of the database server's clock
	behind int64          // how far a replica was behind a server at most, microseconds
	latest [sources][keys]int
}

// NewWorld plays the options.
func NewWorld(o Options) *World {
	w := &World{Options: o, rng: rand.New(rand.NewPCG(o.Seed, 5))}
	w.agenda.now = start
	for s := range sources {
		w.server[s] = w.between(-20*millis, 20*millis)
		for k := range keys {
			w.latest[s][k] = -1
		}
	}
	span := int64(o.Flows) * 5 * millis
	for r := range replicas {
		// One step of each clock, forward or back, somewhere in the middle.
		skew := o.Skew.Microseconds()
		before, after := w.between(-skew, skew), w.between(-skew, skew)
		step := start + w.between(0, span)
		w.wall[r] = func() int64 {
			if w.agenda.now < step {
				return w.agenda.now + before
			}
			return w.agenda.now + after
		}
		w.clock[r] = hlc.New(func() time.Time { return time.UnixMicro(w.wall[r]()) }, 0)
		for s := range sources {
			w.behind = max(w.behind, w.server[s]-min(before, after))
		}
	}
	for range o.Flows {
		w.agenda.at(start+w.between(0, span), func() { w.flow(w.rng.IntN(replicas), w.rng.IntN(sources), w.rng.IntN(keys), nil) })
	}
	w.agenda.run()
	w.Edges = slices.DeleteFunc(w.Edges, func(e Edge) bool {
		return w.Txs[w.Events[e.Cause].Tx].Written == 0 || w.Txs[w.Events[e.Effect].Tx].Written == 0
	})
	return w
}

// between draws from [low, high].
func (w *World) between(low, high int64) int64 { return low + w.rng.Int64N(high-low+1) }

func (w *World) chance(p float64) bool { return w.rng.Float64() < p }

// duration is log-normal with a median of 8 ms, cut where the bound is; now and then a
// transaction is held open for almost that long.
func (w *World) duration() int64 {
	most := (w.Transaction - w.Staged).Microseconds() - 1
	if w.chance(0.01) {
		return most - w.between(0, 20*millis)
	}
	return min(int64(8000*math.Exp(1.3*w.rng.NormFloat64())), most)
}

func (w *World) stamp(replica int) hlc.Stamp {
	if w.RawWall {
		return hlc.Stamp(w.wall[replica]()/millis) << 16
	}
	return w.clock[replica].Now()
}
