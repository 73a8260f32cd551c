package router

import (
	"unicode/utf8"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
)

// setHeaders writes the headers in the order that the package page shows.
func (r *Router) setHeaders(rec *event.Record, p *plan, ev *event.Event, when *times, scratch []byte) ([]byte, *event.Error) {
	var fault *event.Error
	h, f := rec.Headers, &ev.Fields
	if r.preset == event.Forze {
		h = add(h, headerForzeEventID, f[event.EventID])
		h = add(h, headerForzeOccurredAt, when.txt)
		h = add(h, headerForzeCorrelation, f[event.Correlation])
		h = add(h, headerForzeCausation, f[event.Causation])
		h = add(h, headerForzeExecution, f[event.Execution])
		h = add(h, headerForzeTenant, f[event.Tenant])
		if packed := f[event.HLC]; len(packed) > 0 {
			var text []byte
			text, scratch, fault = stampText(packed, scratch)
			h = add(h, headerForzeHLC, text)
		}
	} else {
		h = add(h, headerID, f[event.EventID])
	}
	h = add(h, headerTraceparent, f[event.Traceparent])

	for i, v := range ev.Extra {
		if v != nil && i < len(r.headers) { // an empty value is a value
			h = append(h, event.Header{Key: r.headers[i].Name, Value: v})
		}
	}
	ours := h
	for _, m := range ev.Headers {
		if !utf8.ValidString(m.Key) {
			fault = graver(fault, poison(AnchorField, "the event brings a header whose name %s is not UTF-8", brief([]byte(m.Key))))
			continue
		}
		if !p.isReserved(m.Key) && !has(ours, m.Key) {
			h = append(h, m)
		}
	}
	if p.Envelope == EnvelopeCloudEvents {
		var next *event.Error
		h, next = r.addCloudEvents(h, ev, when)
		fault = graver(fault, next)
	}
	if r.position {
		start := len(scratch)
		scratch = r.appendPosition(scratch, ev)
		h = append(h, event.Header{Key: headerPosition, Value: made(scratch, start)})
	}
	if ev.NonTransactional {
		h = append(h, event.Header{Key: headerTransactional, Value: notTransactional})
	}
	h = add(h, r.typeHeader(), f[event.Type])
	rec.Headers = h
	if r.preset == event.Forze {
		fault = graver(fault, checkText(rec))
	}
	return scratch, fault
}

// add leaves a header out whose value is NULL or empty.
func add(h []event.Header, name string, v []byte) []event.Header {
	if len(v) == 0 {
		return h
	}
	return append(h, event.Header{Key: name, Value: v})
}

func has(h []event.Header, name string) bool {
	for i := range h {
		if h[i].Key == name {
			return true
		}
	}
	return false
}

func (r *Router) typeHeader() string {
	if r.preset == event.Forze {
		return headerForzeType
	}
	return headerType
}

// stampText turns a packed stamp into the text that consumers merge.
func stampText(packed, scratch []byte) (text, grown []byte, fault *event.Error) {
	s, err := hlc.ParsePacked(packed)
	if err != nil {
		return nil, scratch, poison(AnchorField, "the event's %s is unusable: %s is not a packed stamp "+
			"(a positive 64-bit integer)", event.HLC, brief(packed))
	}
	start := len(scratch)
	scratch, _ = s.AppendText(scratch) // never fails
	return made(scratch, start), scratch, nil
}

// checkText holds the record to what forze consumers can read: a key or a
// header value that is not UTF-8 stops such a consumer altogether.
func checkText(rec *event.Record) *event.Error {
	if !utf8.Valid(rec.Key) {
		return poison(AnchorField, "the event's key %s is not UTF-8, which stops forze consumers", brief(rec.Key))
	}
	for i := range rec.Headers {
		if h := &rec.Headers[i]; !utf8.Valid(h.Value) {
			return poison(AnchorField, "the value of header %s is not UTF-8, which stops forze consumers", h.Key)
		}
	}
	return nil
}

var notTransactional = []byte("false") // shared by all records; nobody writes to it
