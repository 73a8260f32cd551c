package mongostream

import (
	"github.com/walrelay/walrelay/event"
)

// cutter finds where transactions end. A change stream does not say; a transaction's
// events follow each other, and it is complete when something else comes: an event of another
// one or of none, or an answer without events, for a server that had more would have
// sent it.
//
// It takes the spans of the batch at hand and gives them back, longer.
type cutter struct {
	open    bool // a transaction is at hand
	lsid    []byte
	txn     int64
	ordinal uint32 // of the next event
	last    event.Position

	span   event.Span // the part of the transaction in this batch
	placed bool       // the last span that was added is a place without events
}

// begin takes up the transaction that an event belongs to and ends the one before.
func (k *cutter) begin(spans []event.Span, c *change) []event.Span {
	if k.open && c.lsid != nil && c.txn == k.txn && string(c.lsid) == string(k.lsid) {
		return spans
	}
	spans = k.end(spans)
	k.ordinal = 0
	if k.open = c.lsid != nil; k.open {
		k.lsid, k.txn = append(k.lsid[:0], c.lsid...), c.txn
	}
	return spans
}

// event counts an event at pos, published or passed over.
func (k *cutter) event(spans []event.Span, pos event.Position, published bool) []event.Span {
	if published {
		k.ordinal++
		k.span.Events++
	}
	k.last = pos
	if k.open {
		return spans
	}
	return k.close(spans)
}

// end ends the transaction at hand, if there is one.
func (k *cutter) end(spans []event.Span) []event.Span {
	if !k.open {
		return spans
	}
	k.open = false
	return k.close(spans)
}

// close adds the last span of a transaction.
func (k *cutter) close(spans []event.Span) []event.Span {
	if k.ordinal == 0 {
		return k.place(spans, k.last)
	}
	k.placed = false
	k.span.Done, k.span.End = true, k.last
	spans = append(spans, k.span)
	k.span, k.ordinal = event.Span{}, 0
	return spans
}

// pause adds what the batch has of a transaction that may go on in the next one.
func (k *cutter) pause(spans []event.Span) []event.Span {
	if k.span.Events > 0 {
		k.placed = false
		spans = append(spans, k.span)
		k.span = event.Span{}
	}
	return spans
}

// idle is an answer without events: what was at hand is complete, and pos is a place too.
func (k *cutter) idle(spans []event.Span, pos event.Position) []event.Span {
	spans = k.end(spans)
	if pos.Compare(k.last) <= 0 {
		return spans
	}
	k.last = pos
	return k.place(spans, pos)
}

// place adds a place without events; a run of them is one span.
func (k *cutter) place(spans []event.Span, pos event.Position) []event.Span {
	if n := len(spans); n > 0 && k.placed {
		spans[n-1].End = pos
		return spans
	}
	k.placed = true
	return append(spans, event.Span{Done: true, End: pos})
}
