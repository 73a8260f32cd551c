package outbox

// waiting are the rows that were handed out and have no result, by their numbers,
// which follow each other:
//
//	entries[i] is number first+i, nil once its result is in; the first is never nil
type waiting struct {
	first   uint64
	entries []*entry
}

// next is the number that the next row gets, counted from 0.
func (w *waiting) next() uint64 { return w.first + uint64(len(w.entries)) }

func (w *waiting) add(e *entry) { w.entries = append(w.entries, e) }

// get answers nil for a number that has its result, or was never given.
func (w *waiting) get(n uint64) *entry {
	if n < w.first || n >= w.next() {
		return nil
	}
	return w.entries[n-w.first]
}

// take is get, and the entry waits no more.
func (w *waiting) take(n uint64) *entry {
	e := w.get(n)
	if e == nil {
		return nil
	}
	w.entries[n-w.first] = nil
	gone := 0
	for gone < len(w.entries) && w.entries[gone] == nil {
		gone++
	}
	w.entries = w.entries[gone:]
	w.first += uint64(gone)
	return e
}
