package decoder

import (
	"bytes"
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// Message makes an event of a logical message.
//
//	prefix                   content
//	outbox                   one JSON object: route, key, payload and so on (object.go)
//	outbox/<route>           the payload, any bytes
//	outbox/<route>/<key>     the payload, any bytes; the key may contain slashes
//
// Slices alias the message's bytes or scratch, as with [Mapper.Row]. An event id
// that the message does not bring is made of its place in the log. A message has
// no row: RowID is always nil.
//
// An error is always Poison. ev is then filled as far as the message could be
// read; if it could not be read at all, the whole content is its payload, so that
// parking it loses nothing.
func (m *Mapper) Message(msg *LogicalMessage, tx Tx, ev *event.Event, scratch []byte) (Outcome, []byte, error) {
	prefix, rest, routed := m.match(msg.Prefix)
	if prefix == "" {
		return IgnoredPrefix, scratch, nil
	}
	if !msg.Transactional && !m.messages.AllowNonTransactional {
		return IgnoredNonTransactional, scratch, nil
	}
	m.start(ev, tx, prefix)
	ev.NonTransactional = !msg.Transactional
	outcome, problem := Publish, ""
	if routed {
		ev.Fields[event.Route], ev.Fields[event.Key] = cutRoute(rest)
		ev.Fields[event.Payload] = present(msg.Content)
	} else {
		scratch, problem = m.objects.read(msg.Content, ev, scratch)
		ev.Fields[event.RowID] = nil
		if problem == "" {
			outcome, problem = m.judgeMessage(ev)
		}
	}
	if len(ev.Fields[event.EventID]) == 0 {
		start := len(scratch)
		scratch = appendMessageID(scratch, m.system, tx.Commit.LSN, tx.Ordinal)
		ev.Fields[event.EventID] = scratch[start:len(scratch):len(scratch)]
	}
	if problem != "" {
		return Refused, scratch, &event.Error{
			Class: event.Poison,
			What: fmt.Sprintf("logical message %d of the transaction at %s with prefix %q: %s",
				ev.Ordinal, ev.Commit, prefix, problem),
			Anchor: AnchorPoisonMessage,
		}
	}
	return outcome, scratch, nil
}

// judgeMessage applies the rules for rows, save one: what is not due yet has no
// row to wait in, and would be lost if it were left to the sweep.
func (m *Mapper) judgeMessage(ev *event.Event) (Outcome, string) {
	o, err := m.judge(ev)
	if err != nil {
		return Refused, err.Error()
	}
	if o == Deferred {
		return Refused, "available_at lies after the commit, and a message has no row to wait in"
	}
	return o, ""
}

// match finds the configured prefix that p is, or is a route below. It comes
// first and is cheap, since messages of everybody in the database come this way.
func (m *Mapper) match(p []byte) (prefix string, rest []byte, routed bool) {
	for _, prefix := range m.messages.Prefixes {
		n := len(prefix)
		if len(p) < n || string(p[:n]) != prefix {
			continue
		}
		if len(p) == n {
			return prefix, nil, false
		}
		if p[n] == '/' {
			return prefix, p[n+1:], true
		}
	}
	return "", nil, false
}

// cutRoute splits at the first slash; no slash means no key.
func cutRoute(rest []byte) (route, key []byte) {
	i := bytes.IndexByte(rest, '/')
	if i < 0 {
		return present(rest), nil
	}
	return rest[:i:i], rest[i+1:]
}

// present makes sure that an empty value is not taken for NULL.
func present(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
