package router

import "github.com/walrelay/walrelay/event"

// times is the event's occurred_at in the forms that a record needs.
type times struct {
	at  instant
	ok  bool   // at could be read
	iso bool   // text is an ISO time in UTC, not what the source printed
	txt []byte // nil: the event has none, or nobody asked
}

// times reads occurred_at where the record shows it. What has no ISO form
// (infinity, years outside 1…9999, digits beyond the microsecond) stays as the
// source printed it: nothing is lost.
func (r *Router) times(p *plan, ev *event.Event, scratch []byte) (times, []byte) {
	raw := ev.Fields[event.OccurredAt]
	text := r.preset == event.Forze || p.Envelope != EnvelopeNone
	if len(raw) == 0 || !text && p.Timestamp == TimestampCommit {
		return times{}, scratch
	}
	t := times{txt: raw}
	t.at, t.ok = parseTimestamp(raw)
	if text && t.ok && t.at.iso() {
		start := len(scratch)
		scratch = t.at.appendISO(scratch)
		t.txt, t.iso = made(scratch, start), true
	}
	return t, scratch
}

// made is what was appended to scratch since start; appending to it cannot
// reach what comes after.
func made(scratch []byte, start int) []byte { return scratch[start:len(scratch):len(scratch)] }
