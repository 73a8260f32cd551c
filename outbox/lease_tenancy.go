package outbox

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/event"
)

// TenancyObserver hears what a Tenancy does. Every field may be nil; calls must not block.
type TenancyObserver struct {
	// Shards: this process holds so many of all, and so many members share them.
	Shards func(own, of, members int)
	// Lost: shards went to somebody else, or could not be renewed in time.
	Lost func(shards int)
	// Warning: renewals fail; an empty What takes it back.
	Warning func(key string, c event.Condition)
	// Beat: the loop steps.
	Beat func()
}

// Tenancy keeps the leases of one source for this process: it renews them, takes its
// fair share, gives back what is beyond it once nothing of that is under way, and
// stops in time by the monotonic clock:
//
//	valid until = start of the last successful renewal + TTL − margin ≤ expiry(database)
//
// It outlives the gears that use it, one at a time. A nil Tenancy holds a key space
// that is not cut.
type Tenancy struct {
	leases Leases
	holder string
	of     int
	ttl    time.Duration
	obs    TenancyObserver

	poke   chan struct{}
	base   time.Time
	until  atomic.Int64  // nanoseconds after base
	losses atomic.Uint64 // how often something was lost that rows may be under way for

	mu        sync.Mutex
	version   uint64
	own       []int
	leaving   []int  // of own: to be given back
	leftAt    uint64 // no row claimed under this version or later is of a leaving shard
	under     uint64 // the lowest version of which rows are under way
	tenures   []Tenure
	reclaimed []Tenure // of those: done, and to be said with the next renewal
	want      LeaseWant
	joined    bool // counted among the members, so that their number is known
	members   int
	rank      int // among them
	others    []string
	failure   error
	changed   chan struct{}
}

// LeaseView is what a Tenancy holds at one moment.
type LeaseView struct {
	Version uint64 // grows with every change
	Losses  uint64 // grows with every loss
	Shards  Shards
	All     bool // Shards are all there are
	Others  []string
	// Tenures of dead holders whose claims are to be reclaimed; TenuresDone takes them out.
	Tenures []Tenure
	// Err is why no renewal will ever succeed.
	Err error
}

// NewTenancy makes a tenancy that holds nothing until Run. holder names this process
// and no other, past or future.
func NewTenancy(leases Leases, holder string, opt Options, obs TenancyObserver) *Tenancy {
	opt = opt.WithDefaults()
	t := &Tenancy{
		leases: leases, holder: holder, of: opt.Shards, ttl: opt.LeaseTTL, obs: obs,
		poke: make(chan struct{}, 1), base: time.Now(), under: math.MaxUint64, changed: make(chan struct{}),
	}
	t.until.Store(math.MaxInt64)
	return t
}

// LeaseWant says which shards are wanted.
type LeaseWant uint8

// The wants.
const (
	// WantNone: to hold nothing, and to have no share.
	WantNone LeaseWant = iota
	// WantShare: as many as the others.
	WantShare
	// WantAll: all of them; a part of them is given back.
	WantAll
)

// Ask says what is wanted from now on; nothing before.
func (t *Tenancy) Ask(want LeaseWant) {
	if t == nil {
		return
	}
	t.mu.Lock()
	changed := t.want != want
	t.want = want
	if changed && t.leaveLocked() {
		t.changeLocked()
		t.leftAt = t.version
	}
	t.mu.Unlock()
	if changed {
		signal(t.poke)
	}
}

// Exclusive is Ask for all shards, or for the share.
func (t *Tenancy) Exclusive(all bool) {
	if all {
		t.Ask(WantAll)
	} else {
		t.Ask(WantShare)
	}
}

// View is what is held now.
func (t *Tenancy) View() LeaseView {
	if t == nil {
		return LeaseView{All: true}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expireLocked()
	v := LeaseView{
		Version: t.version, Losses: t.losses.Load(), Others: t.others, Err: t.failure,
		Shards: Shards{Of: t.of, Holder: t.holder}, Tenures: slices.Clone(t.tenures),
	}
	for _, s := range t.own {
		if !slices.Contains(t.leaving, s) {
			v.Shards.Own = append(v.Shards.Own, s)
		}
	}
	v.All = len(v.Shards.Own) == t.of
	return v
}

// Losses answers like the view's, for every record: it takes no lock as long as
// nothing is lost.
func (t *Tenancy) Losses() uint64 {
	if t == nil {
		return 0
	}
	if int64(time.Since(t.base)) >= t.until.Load() {
		t.mu.Lock()
		t.expireLocked()
		t.mu.Unlock()
	}
	return t.losses.Load()
}

// Changed is closed at the next change.
func (t *Tenancy) Changed() <-chan struct{} {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// TenuresDone forgets tenures whose claims are reclaimed.
func (t *Tenancy) TenuresDone(done []Tenure) {
	if t == nil || len(done) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tenures = slices.DeleteFunc(t.tenures, func(x Tenure) bool {
		if !slices.Contains(done, x) {
			return false
		}
		t.reclaimed = append(t.reclaimed, x)
		return true
	})
}

// Under tells the lowest version under which rows that are under way were claimed;
// math.MaxUint64 when none is.
func (t *Tenancy) Under(version uint64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.under = version
	if len(t.leaving) > 0 && t.under >= t.leftAt {
		signal(t.poke)
	}
}

// expireLocked drops what could not be renewed in time.
func (t *Tenancy) expireLocked() {
	if len(t.own) == 0 || int64(time.Since(t.base)) < t.until.Load() {
		return
	}
	n := len(t.own)
	t.own, t.leaving = nil, nil
	t.lostLocked(n)
}

func (t *Tenancy) lostLocked(shards int) {
	t.losses.Add(1)
	if t.obs.Lost != nil {
		t.obs.Lost(shards)
	}
	t.changeLocked()
}

func (t *Tenancy) changeLocked() {
	t.version++
	if len(t.own) == 0 {
		t.until.Store(math.MaxInt64)
	}
	close(t.changed)
	t.changed = make(chan struct{})
	if t.obs.Shards != nil {
		t.obs.Shards(len(t.own)-len(t.leaving), t.of, t.members)
	}
}

// Release gives everything up for an orderly end, so that others take over at once.
// Run has ended, and nothing is under way.
func (t *Tenancy) Release(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	t.own, t.leaving = nil, nil
	t.changeLocked()
	owed := len(t.tenures) > 0
	t.mu.Unlock()
	if owed { // what a dead holder left is not given back yet: the leases run out, and say so to the next
		return nil
	}
	return t.leases.Release(ctx, t.holder)
}
