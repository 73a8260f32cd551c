package outbox

import (
	"slices"
	"time"
)

// Options say how rows are claimed, retried and given up. WithDefaults fills the
// zero values.
type Options struct {
	// Source is the name in the configuration.
	Source string
	// Batch is the most rows of one claim (500; where the lease stands for the claim 5 000).
	Batch int
	// InFlight is the most rows that are claimed and not settled (4 batches).
	InFlight int
	// Interval is how long to sleep after an empty claim (1 s); a notification ends the sleep.
	Interval time.Duration
	// Shards is the number of parts that the key space is cut into (16). It must be the
	// same for all processes of one source.
	Shards int
	// LeaseTTL is how long a shard stays with a process that cannot be heard (10 s).
	LeaseTTL time.Duration
	// ReclaimAfter is the age at which a claim in the table counts as abandoned (60 s).
	ReclaimAfter time.Duration
	// Attempts is how often a row is tried before it is given up (5).
	Attempts int
	// BackoffMin and BackoffMax bound the wait before the next attempt (1 s, 5 min).
	BackoffMin, BackoffMax time.Duration
	// Loose are routes that do not hold back; LooseRoute, when set, answers for those
	// that Loose does not name.
	Loose      []string
	LooseRoute func(route string) bool
	// SweepEvery is the time between two looks for rows that the log does not bring (5 s).
	SweepEvery time.Duration
	// KeepPublished is how long published rows stay (0: for ever); RetainBatch how many
	// are deleted at a time (10 000), RetainEvery the time between two looks (1 min).
	KeepPublished time.Duration
	RetainBatch   int
	RetainEvery   time.Duration
	// MarkBacklog is the most events that may be acknowledged and not marked yet (20 000):
	// what a crash repeats of them the look-up finds out.
	MarkBacklog int
}

// WithDefaults fills what was left out.
func (o Options) WithDefaults() Options {
	fill(&o.Batch, 500)
	fill(&o.InFlight, 4*o.Batch)
	fill(&o.Interval, time.Second)
	fill(&o.Shards, 16)
	fill(&o.LeaseTTL, 10*time.Second)
	fill(&o.ReclaimAfter, time.Minute)
	fill(&o.Attempts, 5)
	fill(&o.BackoffMin, time.Second)
	fill(&o.BackoffMax, 5*time.Minute)
	fill(&o.SweepEvery, 5*time.Second)
	fill(&o.RetainBatch, 10_000)
	fill(&o.RetainEvery, time.Minute)
	fill(&o.MarkBacklog, 20_000)
	return o
}

// IsLoose reports whether a route does not hold back.
func (o *Options) IsLoose(route string) bool {
	return slices.Contains(o.Loose, route) || o.LooseRoute != nil && o.LooseRoute(route)
}

func fill[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
