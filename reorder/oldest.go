package reorder

import "github.com/walrelay/walrelay/hlc"

// Oldest gives for each source the least effective stamp that it holds; zero when it
// holds nothing. It looks at all that is held: for those who look at figures, not for the path
// of an event.
func (b *Buffer[T]) Oldest() []hlc.Stamp {
	oldest := make([]hlc.Stamp, len(b.sources))
	for i := range b.heap {
		n := &b.heap[i]
		if at := &oldest[b.slots[n.slot].item.Source]; *at == 0 || n.place.stamp < *at {
			*at = n.place.stamp
		}
	}
	return oldest
}
