package document

import (
	"fmt"
	"slices"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

// anchorPoisonRow is the runbook's section about rows that cannot be made into events.
const anchorPoisonRow event.Anchor = "poison-row"

// Append makes ev the event of doc, one whole BSON document. Where it stands in the log
// (Commit, Ordinal, CommitMicros, Xid) is the caller's and is left alone; everything else is set
// anew, with the memory of its slices kept. What had to be written is appended to dst.
//
// The outcome judges the document as it stands there: for documents that were claimed it says nothing.
func (r *Reader) Append(dst, doc []byte, ev *event.Event) (grown []byte, out Outcome) {
	r.start(ev)
	a := appending{r: r, dst: dst, ev: ev}
	var e bsonjson.Elements
	if e.Start(doc) {
		for e.Next() {
			// Of other fields only the frame is looked at.
			if c := r.find(e.Name); c != nil {
				a.take(c, &e)
			}
		}
	}
	if err := e.Err(); err != nil {
		a.refuse("", err)
	}
	if ev.Fields[event.RowID] == nil {
		a.refuse(fieldID, errNoID)
	}
	if r.idIsEventID && ev.Fields[event.EventID] == nil {
		ev.Fields[event.EventID] = a.idText
	}
	return a.dst, a.judge()
}

func (r *Reader) start(ev *event.Event) {
	extra, headers := ev.Extra[:0], ev.Headers[:0]
	if n := len(r.extras); n > 0 {
		extra = slices.Grow(extra, n)[:n]
		clear(extra)
	}
	*ev = event.Event{
		Extra: extra, Headers: headers, Relation: r.relation,
		Commit: ev.Commit, Ordinal: ev.Ordinal, CommitMicros: ev.CommitMicros, Xid: ev.Xid,
	}
}

// appending is one document on its way.
type appending struct {
	r   *Reader
	dst []byte
	ev  *event.Event

	seen   [maxColumns / 64]uint64 // columns that were met
	idText []byte                  // _id without quotes
	due    int64                   // available_at, milliseconds since 1970
	timed  bool                    // there is one
}

func (a *appending) take(c *column, e *bsonjson.Elements) {
	if bit := uint64(1) << (c.index % 64); c.index < maxColumns {
		if a.seen[c.index/64]&bit != 0 {
			return
		}
		a.seen[c.index/64] |= bit
	}
	if c.isID {
		a.id(e)
	}
	var text []byte
	have := false
	for f := event.Field(0); c.fields>>f != 0; f++ {
		switch {
		case c.fields>>f&1 == 0:
		case f == event.Payload:
			a.payload(e)
		default:
			if t, ok := a.field(f, e); ok {
				a.ev.Fields[f], text, have = t, t, true
			}
		}
	}
	if c.extra == 0 {
		return
	}
	if !have {
		text, _ = a.text(e, a.r.extras[c.extra-1])
	}
	a.ev.Extra[c.extra-1] = text
}

func (a *appending) id(e *bsonjson.Elements) {
	start := len(a.dst)
	grown, err := EncodeID(a.dst, e.Type, e.Value)
	if err != nil {
		a.refuse(fieldID, err)
		return
	}
	a.dst = grown
	a.ev.Fields[event.RowID] = made(grown, start)
	if a.r.idIsEventID {
		a.idText, _ = a.text(e, fieldID)
	}
}

func (a *appending) payload(e *bsonjson.Elements) {
	if a.r.most > 0 && int64(len(e.Value)) > a.r.most {
		a.ev.Elided = int64(len(e.Value))
		return
	}
	payload, grown, contentType, err := a.r.payload.Payload(a.dst, e.Type, e.Value)
	if err != nil {
		a.refuse(a.r.schema.Columns[event.Payload], err)
		return
	}
	a.ev.Fields[event.Payload], a.dst = payload, grown
	if contentType != "" && a.r.format != bsonjson.Plain {
		a.ev.Headers = append(a.ev.Headers, contentTypes[a.r.format])
	}
}

// contentTypes tell a consumer what it has to do with; of plain JSON it needs no telling.
var contentTypes = func() (h [bsonjson.BSON + 1]event.Header) {
	for f := range h {
		h[f] = event.Header{Key: "content-type", Value: []byte(bsonjson.Format(f).ContentType())}
	}
	return h
}()

// refuse makes the event one that can only be refused; the first reason stays.
func (a *appending) refuse(field string, err error) {
	if a.ev.Refused != nil {
		return
	}
	what := "the document cannot be read"
	if field != "" {
		what = fmt.Sprintf("the document's field %q cannot be read", field)
	}
	a.ev.Refused = &event.Error{Class: event.Poison, Anchor: anchorPoisonRow, What: what, Cause: err}
}

// made is what was appended since start; appending to it cannot reach what comes after.
func made(dst []byte, start int) []byte { return dst[start:len(dst):len(dst)] }
