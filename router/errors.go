package router

import (
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// Sections of docs/runbook.md for what the router refuses.
const (
	// AnchorOptions: the route table or the headers are wrong.
	AnchorOptions event.Anchor = "route-options"
	// AnchorRoute: an event has no route, or one that the table does not know.
	AnchorRoute event.Anchor = "no-route"
	// AnchorTopic: a route leads to a name that cannot be a topic.
	AnchorTopic event.Anchor = "illegal-topic"
	// AnchorPayload: a payload is NULL, or does not fit its envelope.
	AnchorPayload event.Anchor = "unusable-payload"
	// AnchorTooLarge: a payload is larger than the relay reads.
	AnchorTooLarge event.Anchor = "payload-too-large"
	// AnchorField: another field of the row cannot be published.
	AnchorField event.Anchor = "unusable-field"
	// AnchorEncryption: a payload is not what its route declares.
	AnchorEncryption event.Anchor = "encryption-mismatch"
)

func poison(anchor event.Anchor, format string, args ...any) *event.Error {
	return &event.Error{Class: event.Poison, Anchor: anchor, What: fmt.Sprintf(format, args...)}
}

// graver keeps the first error, unless a later one stops the source.
func graver(first, next *event.Error) *event.Error {
	if first == nil || next != nil && next.Class == event.Halt && first.Class != event.Halt {
		return next
	}
	return first
}

// brief is a value for a message to people: quoted, and short whatever the row holds.
func brief(v []byte) string {
	const most = 80
	if len(v) > most {
		return fmt.Sprintf("%q… (%d bytes)", v[:most], len(v))
	}
	return fmt.Sprintf("%q", v)
}
