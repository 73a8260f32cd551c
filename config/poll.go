package config

import "time"

// Poll is how rows are claimed and retried, wherever the table is read: with
// capture: poll, at a catch-up, and beside the log for what it does not bring.
type Poll struct {
	// What stands for a claim while a row is under way. `row` writes it into the row (`processing`; where rows carry no state
	// it locks the row until it is deleted) and is safe beside other pollers. `lease` writes nothing: the shard's lease is the
	// claim, at nearly twice the rate, and nobody else may poll the table. Default: `row`; for basic `lease`, since its
	// rows carry no claim.
	Claim string `yaml:"claim" enum:"row|lease"`
	// Rows of one claim, at most. Default: 500; with `claim: lease` 5000.
	Batch int `yaml:"batch" min:"1" max:"50000"`
	// How long to wait after an empty claim.
	Interval time.Duration `yaml:"interval" default:"1s"`
	// Parts that the keys are divided into; several relays share the work by them. It must be the same in all relays of one
	// source: change it while none is running.
	Shards int `yaml:"shards" default:"16" min:"1" max:"1024"`
	// How long a part stays with a relay that cannot be heard.
	Lease time.Duration `yaml:"lease" default:"10s"`
	// Age at which a claim counts as abandoned, and its row is claimable again; at least the lease.
	ReclaimAfter time.Duration `yaml:"reclaim_after" default:"60s"`
	// How often a row is tried before it is given up.
	Attempts int `yaml:"attempts" default:"5" min:"1" max:"1000"`
	// The wait before the second attempt. It doubles with each, and between half and all of it is waited.
	BackoffMin time.Duration `yaml:"backoff_min" default:"1s"`
	// The longest wait before an attempt.
	BackoffMax time.Duration `yaml:"backoff_max" default:"5m"`
	// Lets inserts wake the relay, by a trigger that `walrelay init` makes or prints and `LISTEN`, which needs a connection
	// past a pooler. Without it an event waits for `interval` at most.
	Notify bool `yaml:"notify" default:"false"`
}

// Retention is the removal of published rows.
type Retention struct {
	// How long a published row stays; `0s` keeps all. Where the table is partitioned by time, whole partitions are dropped
	// once every row in them is published and older; otherwise rows are deleted. Needs `after_publish: mark`.
	KeepPublished time.Duration `yaml:"keep_published" default:"0s" zero:"true"`
	// Rows deleted at a time, at most.
	Batch int `yaml:"batch" default:"10000" min:"1" max:"1000000"`
	// Time between two looks.
	Every time.Duration `yaml:"every" default:"1m"`
}
