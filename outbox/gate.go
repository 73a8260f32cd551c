package outbox

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Gate is the set of held keys of one source, in memory. It is asked for every
// record and changed rarely.
//
// A key is held by reasons, which add up: entries of the parking store, rows
// waiting for their next attempt. Events that were left behind the key while it was
// held are remembered by id until the table reader has delivered them, or finds that
// somebody else did: a key is opened only when none is left, so that no later event passes an
// earlier one:
//
//	open(key) ⇒ nothing holds key ∧ behind(key) = ∅ ∧ aside(key) = 0
type Gate struct {
	held atomic.Int64 // number of held keys: the common answer without a lock

	mu   sync.Mutex
	keys map[string]*holding
	now  uint64 // grows with every event that was put aside or left behind
}

type holding struct {
	firm  bool   // the database says so: parked, or told to retry and not published yet
	aside int    // events that are being put aside: the store may not know of them yet
	since uint64 // of the last that was
	// behind are events left behind it, not delivered yet, by id: when the database was seen
	// to have them; 0: not yet.
	behind map[string]uint64
}

// NewGate makes a gate that holds nothing.
func NewGate() *Gate { return &Gate{keys: map[string]*holding{}} }

// Held reports whether later events of the key must wait.
func (g *Gate) Held(key []byte) bool {
	if g.held.Load() == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.keys[string(key)] != nil
}

// Hold holds a key from now on.
func (g *Gate) Hold(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold(key).firm = true
}

// PutAside holds a key while an event of it goes into the store. To be called before
// the store is asked; the answer is called when it has answered, whatever it said.
func (g *Gate) PutAside(key string) (answered func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.hold(key)
	h.firm = true
	h.aside++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.now++
		h.aside--
		h.since = g.now
	}
}

// Now is to be asked before a look at the store: see OpenAsOf.
func (g *Gate) Now() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now
}

// OpenAsOf is Open for a key against which a look at the store found nothing. What
// was put aside since that look began keeps the key held.
func (g *Gate) OpenAsOf(key string, look uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.keys[key]; h != nil && h.since > look {
		return false
	}
	return g.open(key)
}

// LeftBehind notes an event that waits behind its key. The key is held from then
// on even if it was opened a moment ago: whoever asked was told to wait.
func (g *Gate) LeftBehind(key, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.hold(key)
	if h.behind == nil {
		h.behind = map[string]uint64{}
	}
	h.behind[id] = 0
}

// InPlace says that the database has an event that was left behind: its row can be
// seen, or it is in the store.
func (g *Gate) InPlace(key, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.keys[key]; h != nil {
		if _, ok := h.behind[id]; ok {
			g.now++
			h.behind[id] = g.now
		}
	}
}

// NothingPending takes out what was left behind the key and was in place at a time of
// [Gate.Now]: whoever looked for pending events after that found none of the key. Somebody else
// published them, or gave them up.
func (g *Gate) NothingPending(key string, asOf uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.keys[key]; h != nil {
		maps.DeleteFunc(h.behind, func(_ string, at uint64) bool { return at > 0 && at <= asOf })
	}
}

// Delivered takes an event out that was left behind.
func (g *Gate) Delivered(key, id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.keys[key]; h != nil {
		delete(h.behind, id)
	}
}

// Open stops holding the key, unless something was left behind it or is being put
// aside. It answers whether later events pass now.
func (g *Gate) Open(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open(key)
}

func (g *Gate) open(key string) bool {
	h := g.keys[key]
	switch {
	case h == nil:
	case h.aside > 0:
		return false
	case len(h.behind) > 0:
		h.firm = false
		return false
	default:
		delete(g.keys, key)
		g.held.Store(int64(len(g.keys)))
	}
	return true
}

// Keys are the held keys.
func (g *Gate) Keys() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	keys := make([]string, 0, len(g.keys))
	for k := range g.keys {
		keys = append(keys, k)
	}
	return keys
}

// Len is the number of held keys.
func (g *Gate) Len() int { return int(g.held.Load()) }

func (g *Gate) hold(key string) *holding {
	h := g.keys[key]
	if h == nil {
		h = &holding{}
		g.keys[key] = h
		g.held.Store(int64(len(g.keys)))
	}
	return h
}
