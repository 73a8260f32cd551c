package router

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/walrelay/walrelay/event"
)

// appendEnvelope writes one JSON object around the payload:
//
//	{"eventId":"…","eventType":"…","aggregateType":"…","aggregateId":"…",
//	 "aggregateVersion":7,"occurredAt":"…","data":…}
//
// without line breaks. A member whose field is NULL or empty is left out. data
// is the payload's own bytes, so they must be JSON. aggregateVersion is a number
// where the column prints a plain integer, else a string. On error dst is as it was.
func appendEnvelope(dst []byte, ev *event.Event, when *times) ([]byte, *event.Error) {
	f := &ev.Fields
	payload := f[event.Payload]
	if !json.Valid(payload) {
		return dst, poison(AnchorPayload, "the payload of %d bytes is not JSON, but its route has envelope json", len(payload))
	}
	e := envelope{out: append(dst, '{')}
	e.text(`"eventId":`, event.EventID, f[event.EventID])
	e.text(`"eventType":`, event.Type, f[event.Type])
	e.text(`"aggregateType":`, event.Route, f[event.Route])
	e.text(`"aggregateId":`, event.Key, f[event.Key])
	if v := f[event.Version]; isInteger(v) {
		e.out = append(append(append(e.out, `"aggregateVersion":`...), v...), ',')
	} else {
		e.text(`"aggregateVersion":`, event.Version, v)
	}
	e.text(`"occurredAt":`, event.OccurredAt, when.txt)
	if e.fault != nil {
		return dst, e.fault
	}
	e.out = append(append(e.out, `"data":`...), payload...)
	return append(e.out, '}'), nil
}

// envelope collects members; its fault is sticky.
type envelope struct {
	out   []byte
	fault *event.Error
}

func (e *envelope) text(name string, f event.Field, v []byte) {
	if len(v) == 0 {
		return
	}
	if !utf8.Valid(v) {
		e.fault = graver(e.fault, poison(AnchorField, "the event's %s %s is not UTF-8, so it cannot stand in envelope json", f, brief(v)))
		return
	}
	e.out = append(appendQuoted(append(e.out, name...), v), ',')
}

// appendQuoted writes a JSON string; v must be UTF-8. Only what RFC 8259 section
// 7 requires is escaped.
func appendQuoted(dst, v []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, c := range v {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// isInteger reports whether v is a JSON number without fraction and exponent.
func isInteger(v []byte) bool {
	if len(v) > 0 && v[0] == '-' {
		v = v[1:]
	}
	if len(v) == 0 || v[0] == '0' && len(v) > 1 {
		return false
	}
	for _, c := range v {
		if !isDigit(c) {
			return false
		}
	}
	return true
}
