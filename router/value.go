package router

import (
	"bytes"

	"github.com/walrelay/walrelay/event"
)

// setValue chooses the record's body. With an error the body is the bare
// payload, if there is one, for the dead letter.
func setValue(rec *event.Record, p *plan, ev *event.Event, when *times, scratch []byte) ([]byte, *event.Error) {
	payload := ev.Fields[event.Payload]
	switch {
	case ev.Elided > 0:
		// Never a tombstone: the event has a payload, we have not read it.
		return scratch, poison(AnchorTooLarge, "the payload of %d bytes is larger than the max_event_bytes of its source", ev.Elided)
	case payload == nil && p.NullPayload == NullTombstone:
		return scratch, nil
	case payload == nil:
		return scratch, poison(AnchorPayload, "the event's payload is NULL, and its route does not say null_payload: tombstone")
	}
	rec.Value = payload
	if fault := checkEncryption(p, payload); fault != nil {
		return scratch, fault
	}
	if p.Envelope != EnvelopeJSON {
		return scratch, nil
	}
	start := len(scratch)
	grown, fault := appendEnvelope(scratch, ev, when)
	if fault != nil {
		return scratch, fault
	}
	rec.Value = made(grown, start)
	return grown, nil
}

// cipherPrefix is how consumers recognise ciphertext, byte for byte.
var cipherPrefix = []byte(`{"__fz_enc__":`)

// checkEncryption compares the payload with the route's declaration. A mismatch
// stops the source: it is a fault of the deployment, not of the row, and putting
// row after row aside would only hide it.
func checkEncryption(p *plan, payload []byte) *event.Error {
	switch p.Encryption {
	case EncryptionNone:
		if wrapped(payload) {
			return &event.Error{
				Class: event.Halt, Fault: event.FaultUsage, Anchor: AnchorEncryption,
				What:   "an event on route " + p.Match + " is encrypted, but the route declares encryption: none",
				Remedy: "declare encryption: forward or end_to_end for the route, or find out who encrypts",
			}
		}
	case EncryptionEndToEnd:
		if !bytes.HasPrefix(payload, cipherPrefix) {
			return &event.Error{
				Class: event.Halt, Fault: event.FaultUsage, Anchor: AnchorEncryption,
				What:   "an event on route " + p.Match + " is not encrypted, but the route declares encryption: end_to_end",
				Remedy: "declare encryption: forward if plain text is meant to pass, or make the application encrypt",
			}
		}
	case EncryptionForward:
	}
	return nil
}

// wrapped looks for the wrapper's one member with any white space around: a json
// column keeps the writer's.
func wrapped(payload []byte) bool {
	const space = " \t\r\n"
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(payload, space), []byte("{"))
	if !ok {
		return false
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, space), []byte(`"__fz_enc__"`))
	return ok && bytes.HasPrefix(bytes.TrimLeft(rest, space), []byte(":"))
}
