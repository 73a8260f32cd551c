package reorder

import "github.com/walrelay/walrelay/hlc"

// heads knows, for each key that has items in the buffer, the last item of each source.
//
// The merge by heads keeps a queue per source and key in the order of commits, and
// always takes the least head whose stamp is below the watermark. The buffer has no
// queues; it raises: an item gets the place of the greatest earlier item of its queue
// that is still held, if that one is greater than its own, and stands directly behind it.
//
// Claim: both give the same order. Let K(e) be the place by an item's own stamp, and call e
// a peak when K(e) is greater than that of all before it in its queue; an item that is not
// a peak is raised behind the last peak p before it.
//
//  1. When the merge takes p, p is the least head, so all other heads are greater than
//     p. What follows p in its queue up to the next peak is less than p, so each of these
//     becomes the head and is at once the least: they are taken directly behind p, in the
//     queue's order. That is where raising puts them.
//  2. Peaks go in the order of K: of two peaks p < q of different queues, the head of
//     p's queue is at most p as long as p is held (peaks rise within a queue), so it is less
//     than q, and q is not taken.
//  3. p goes when W > stamp(p); what is raised behind it has a smaller stamp, so it may go
//     as well, in both.
//
// The claim needs that nothing smaller than p comes between p and those behind it: they are
// taken in one go, or nothing is late.
//
// What neither can do: a queue of [e1(100), e2(50)] in one source and f(60) of the same key
// in another. f goes before e1, so before e2, although its stamp says after. If e2 caused
// f, that is an effect before its cause; pure stamp order would instead put e2 before e1.
// Such pairs are counted as conflicts. One that was released before e1 came is not
// remembered: its stamp is already above e2's, which then counts as late.
type heads struct {
	sources int
	table   []head // linear probing; a power of two, at most half full
	used    int
	tails   []tail // sources of them for each key
	free    []uint32
}

// head maps a key to its tails. Keys are hashes already: they are spread as they are.
type head struct {
	key   uint64 // 0: empty
	first uint32 // of its tails
	held  uint32 // items of all sources
}

// tail is the end of one queue.
type tail struct {
	held   int
	stamp  hlc.Stamp // the greatest place in the queue: that of its last item
	anchor uint64
	// above is the greatest stamp of this key that went out from another source since
	// the queue began.
	above hlc.Stamp
}

func newHeads(sources int) heads {
	return heads{sources: sources, table: make([]head, 64)}
}

// none marks an item that is in no queue.
const none = ^uint32(0)

// join enters an item into its queue and answers the place it gets, and where its tails are.
func (h *heads) join(key uint64, source int, stamp hlc.Stamp, arrival uint64) (hlc.Stamp, uint64, uint32) {
	e := h.find(key)
	if e.key == 0 {
		if 2*(h.used+1) > len(h.table) {
			h.grow()
			e = h.find(key)
		}
		*e = head{key: key, first: h.take()}
		h.used++
	}
	e.held++
	t := &h.tails[int(e.first)+source]
	if t.held == 0 || t.stamp <= stamp {
		t.stamp, t.anchor = stamp, arrival
	}
	t.held++
	return t.stamp, t.anchor, e.first
}

// leave takes an item that goes out off its queue and answers whether it is a conflict:
// own is its stamp before it was raised.
func (h *heads) leave(key uint64, first uint32, source int, own hlc.Stamp) bool {
	tails := h.tails[first : int(first)+h.sources]
	conflict := tails[source].above > own
	if tails[source].held--; tails[source].held == 0 {
		tails[source] = tail{}
	}
	for s := range tails {
		if s != source && tails[s].held > 0 {
			tails[s].above = max(tails[s].above, own)
		}
	}
	e := h.find(key)
	if e.held--; e.held == 0 {
		h.free = append(h.free, e.first)
		h.remove(e)
	}
	return conflict
}

// take finds unused tails.
func (h *heads) take() uint32 {
	if n := len(h.free); n > 0 {
		first := h.free[n-1]
		h.free = h.free[:n-1]
		return first
	}
	first := len(h.tails)
	h.tails = append(h.tails, make([]tail, h.sources)...)
	return uint32(first)
}

func (h *heads) home(key uint64) int { return int(key & uint64(len(h.table)-1)) }

// find answers the entry of key, or the empty one where it would be.
func (h *heads) find(key uint64) *head {
	for i := h.home(key); ; i = (i + 1) & (len(h.table) - 1) {
		if e := &h.table[i]; e.key == key || e.key == 0 {
			return e
		}
	}
}

func (h *heads) grow() {
	old := h.table
	h.table = make([]head, 2*len(old))
	for _, e := range old {
		if e.key != 0 {
			*h.find(e.key) = e
		}
	}
}

// remove empties an entry and moves those behind it forward, so that no search ends
// early and no graves pile up.
func (h *heads) remove(e *head) {
	hole := h.home(e.key)
	for &h.table[hole] != e {
		hole = (hole + 1) & (len(h.table) - 1)
	}
	for i := (hole + 1) & (len(h.table) - 1); h.table[i].key != 0; i = (i + 1) & (len(h.table) - 1) {
		// An entry may move to the hole unless its home lies behind the hole.
		if (i-h.home(h.table[i].key))&(len(h.table)-1) >= (i-hole)&(len(h.table)-1) {
			h.table[hole] = h.table[i]
			hole = i
		}
	}
	h.table[hole] = head{}
	h.used--
}
