package outbox

import (
	"slices"
	"time"
)

// ledger is what a Poller knows of keys that have rows under way, or are held. It
// has no lock and no clock.
//
// A row of a key may be claimed when nothing holds the key, or when it is a head of
// it: the one whose turn it is. Rows of a key that are under way when one of them
// fails stay behind it:
//
//	excluded(key) = held(key) ∨ blocked(key)
//	heads go only while under(key) = 0
type ledger struct {
	keys    map[string]*keyState
	stamp   uint64 // grows with every change that a look at the database may not know of
	blocked int    // keys that are blocked
}

// keyState is one key.
type keyState struct {
	under   int    // rows under way
	losses  uint64 // the tenancy's losses when the first of them was claimed
	blocked bool   // one of them failed: those that were not sent yet stay behind
	shut    bool   // one that was claimed was not handed out: no later one is, until all are back
	passing bool   // they are heads, or rows behind an opened gate: the gate does not stop them

	waiting []waiter // in table order
	// What the parking store says.
	listed bool // it holds the key
	parked bool // for a human
	behind bool // all it has are events kept whole behind others that are gone; known to the sweep alone
	heads  []string
	wholes int       // events kept whole that are on their way again, as far as known
	due    time.Time // of a whole event that came back
	stamp  uint64    // of the last change that was made here
}

// waiter is a row that waits for its next attempt, or that somebody else has.
type waiter struct {
	id         string
	table      int
	due        time.Time // by our clock, a guess: the database decides
	processing bool
	memory     bool  // the table cannot carry it: it is known here alone
	fence      Fence // of the claim that it came back from, which may be a lock on it still
	misses     int   // claims that asked for it in vain
	stamp      uint64
}

func (h *keyState) held() bool {
	return h.listed || h.parked || len(h.waiting) > 0 || len(h.heads) > 0 || h.wholes > 0
}

func (h *keyState) idle() bool { return h.under == 0 && !h.held() && !h.behind }

func (l *ledger) get(key string) *keyState {
	h := l.keys[key]
	if h == nil {
		h = &keyState{}
		l.keys[key] = h
	}
	return h
}

// block makes what is under way of the key stay behind.
func (l *ledger) block(h *keyState) {
	if !h.blocked {
		h.blocked = true
		l.blocked++
	}
}

// back takes one row off those under way, and answers whether it was the last.
func (l *ledger) back(key string, h *keyState) bool {
	if h.under--; h.under > 0 {
		return false
	}
	if h.blocked {
		h.blocked = false
		l.blocked--
	}
	h.passing, h.shut = false, false
	l.tidy(key)
	return true
}

// tidy forgets a key that nothing is to be known of.
func (l *ledger) tidy(key string) {
	if h := l.keys[key]; h != nil && h.idle() {
		delete(l.keys, key)
	}
}

// park notes that an event of the key was parked just now.
func (l *ledger) park(h *keyState) {
	l.stamp++
	h.listed, h.parked, h.stamp = true, true, l.stamp
}

// wait notes that a row waits for its next attempt, instead of what was known of it.
func (l *ledger) wait(h *keyState, w waiter) {
	l.stamp++
	w.stamp = l.stamp
	if i := h.find(w.id); i >= 0 {
		h.waiting[i] = w
		return
	}
	h.waiting = append(h.waiting, w)
}

// done notes that a row holds its key no more.
func (l *ledger) done(h *keyState, id string) {
	l.stamp++
	if i := h.find(id); i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
	}
	if i := slices.Index(h.heads, id); i >= 0 {
		h.heads = slices.Delete(slices.Clone(h.heads), i, i+1)
		h.stamp = l.stamp
	}
}

func (h *keyState) find(id string) int {
	return slices.IndexFunc(h.waiting, func(w waiter) bool { return w.id == id })
}

// turn is whose turn it is among the rows that hold the key, at most limit: those that
// waited longest, as far as they are due, and after those the ones that a human told to
// go again. inOrder says that none may go before the one in front of it.
func (h *keyState) turn(now time.Time, limit int) (ids []string, inOrder bool) {
	switch {
	case h.under > 0 || h.wholes > 0:
		return nil, false
	case h.parked || len(h.waiting) == 0:
		return h.heads, false
	}
	for i := range h.waiting {
		w := &h.waiting[i]
		if w.processing || now.Before(w.due) || w.table != h.waiting[0].table || i == limit {
			break
		}
		ids = append(ids, w.id)
	}
	return ids, true
}
