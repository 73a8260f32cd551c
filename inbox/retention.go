package inbox

import (
	"fmt"
	"time"
)

// Retention says which marks are forgotten.
type Retention struct {
	// Keep is for how long marks stay after the record was handled. It must be longer
	// than the topic keeps records and than an offset may ever be set back; 7 days is
	// usual.
	Keep time.Duration
	// Batch is how many marks one statement deletes at most; 1000 when 0.
	Batch int
	// Batches is how many statements one call runs at most; 100 when 0.
	Batches int
}

// Forget deletes in pieces of bounded size and returns how many marks it deleted.
// remove deletes at most so many marks that are older than keep, the oldest first. For
// those who write the inbox of a database.
func Forget(in *Inbox, r Retention, remove func(keep time.Duration, most int) (int64, error)) (deleted int64, err error) {
	if r.Keep <= 0 || r.Batch < 0 || r.Batches < 0 {
		return 0, fmt.Errorf("retention %+v: Keep must be positive, the others not negative", r)
	}
	if r.Batch == 0 {
		r.Batch = 1000
	}
	if r.Batches == 0 {
		r.Batches = 100
	}
	for range r.Batches {
		n, err := remove(r.Keep, r.Batch)
		deleted += n
		if err != nil {
			return deleted, fmt.Errorf("forgetting marks of route %s: %w", in.Route(), err)
		}
		if n < int64(r.Batch) {
			break
		}
	}
	return deleted, nil
}
