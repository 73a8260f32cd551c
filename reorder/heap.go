package reorder

import "github.com/walrelay/walrelay/hlc"

// place is where an item stands in the order of release:
//
//	(stamp, source, anchor, arrival)
//
// Among equal stamps of one source that is the order of arrival, so of commits. anchor is
// the item's own arrival number, or that of the item of its key that it was raised behind:
// it then stands directly behind that one, before all others of that stamp.
type place struct {
	stamp   hlc.Stamp
	lane    uint64 // source << arrivalBits | anchor
	arrival uint64
}

// arrivalBits leaves room for 65 536 sources and, at a million events a second, eight years.
const arrivalBits = 48

func laneOf(source int, anchor uint64) uint64 { return uint64(source)<<arrivalBits | anchor }

func (p *place) before(q *place) bool {
	if p.stamp != q.stamp {
		return p.stamp < q.stamp
	}
	if p.lane != q.lane {
		return p.lane < q.lane
	}
	return p.arrival < q.arrival
}

type node struct {
	place
	slot uint32 // of the item
}

// heap is a heap of four children a node: half as deep as one of two, and the children
// of 32 bytes lie in two cache lines. Items stay where they are; only nodes move.
type heap []node

func (h *heap) push(n node) {
	s := append(*h, n)
	*h = s
	s.up(len(s)-1, n)
}

// up finds the place for n at or above the hole i.
func (h heap) up(i int, n node) {
	for i > 0 {
		parent := (i - 1) / 4
		if !n.before(&h[parent].place) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = n
}

// pop takes the least one. The hole goes down to a leaf along the least children, and the
// last node goes up from there: it came from the bottom, so it rarely moves.
func (h *heap) pop() node {
	s := *h
	top := s[0]
	last := s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	hole := 0
	for {
		first := 4*hole + 1
		if first >= len(s) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(s)); c++ {
			if s[c].before(&s[least].place) {
				least = c
			}
		}
		s[hole] = s[least]
		hole = least
	}
	s.up(hole, last)
	return top
}
