package outbox

import (
	"context"
	"time"
)

// Leases are the shards of a source's key space, each held by one process at a
// time. The database's clock decides; a holder that cannot renew stops by its
// own monotonic clock before the database gives its shards away:
//
//	stop(holder) ≤ expiry(database)
//
// Implementations keep one row per shard and one per member, so that members
// can tell their fair share.
type Leases interface {
	// Renew prolongs everything that holder holds by ttl, notes that it lives, takes
	// free or expired shards, lowest first, up to req.Want shards in all, and gives back
	// req.GiveBack. One short transaction. A shard taken from a holder that is gone comes
	// with its tenure, and is not taken while a claim of his that began under the lease is not
	// over (see Shards.Holder).
	// It also answers how many members are alive, holder among them.
	Renew(ctx context.Context, holder string, ttl time.Duration, req LeaseRequest) (LeaseState, error)

	// Release gives up all shards and the membership, for an orderly end.
	Release(ctx context.Context, holder string) error
}

// LeaseRequest says what a member wants.
type LeaseRequest struct {
	// Of is the number of shards of the source.
	Of int
	// Want is how many shards to hold at most; Of for all.
	Want int
	// Reclaimed are tenures of earlier answers whose claims were given back. Until it is
	// said, the holder's own tenure of the shard begins with that of him who had it before: should the
	// holder die, the next one reclaims for both.
	Reclaimed []Tenure
	// GiveBack are shards to give up now: nothing of them is under way any more.
	GiveBack []int
	// All: shards are of use together only. None is taken unless the holder has shard 0 or
	// gets it now, so that of two who want all one gets them; and the holder counts as a
	// member, who has a share, only once it has shard 0.
	All bool
}

// LeaseState is what a member holds after a renewal.
type LeaseState struct {
	Own []int // ascending
	// Tenures of those that were taken from somebody who did not release them.
	Tenures []Tenure
	Members int
	// Rank of the holder among the members: how many have a lesser name.
	Rank int
	// Others names the holders of the other shards, for messages to people.
	Others []string
}
