package decoder

import (
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// The sections of docs/runbook.md that errors of this package point at.
const (
	// AnchorUnknownMessage: the server sends a kind, or a form of one, that we do not know.
	AnchorUnknownMessage event.Anchor = "unknown-replication-message"
	// AnchorMalformed: the bytes do not follow the protocol.
	AnchorMalformed event.Anchor = "malformed-replication-message"
	// AnchorMissingColumn: an outbox relation lacks a required column.
	AnchorMissingColumn event.Anchor = "outbox-column-missing"
	// AnchorBinaryType: a type whose binary form we cannot read.
	AnchorBinaryType event.Anchor = "unknown-binary-type"
	// AnchorMapping: the mapping of columns and messages cannot be used.
	AnchorMapping event.Anchor = "mapping-unusable"
	// AnchorPoisonRow: a row that can never be published as it is.
	AnchorPoisonRow event.Anchor = "poison-row"
	// AnchorPoisonMessage: a logical message that can never be published as it is.
	AnchorPoisonMessage event.Anchor = "poison-logical-message"
)

// Error is a message that could not be decoded. It is a Halt, and unwraps to the
// [*event.Error] that says what happened, the remedy and the anchor.
type Error struct {
	Kind Kind
	// LSN is the WAL start of the frame that held the message.
	LSN event.LSN
	// Offset is the byte of the message at which reading failed.
	Offset int

	halt event.Error
}

func (e *Error) Error() string { return e.halt.Error() }

// Unwrap gives the *event.Error.
func (e *Error) Unwrap() error { return &e.halt }

// ErrorClass is always Halt.
func (e *Error) ErrorClass() event.Class { return event.Halt }

const (
	remedyReport = "keep the slot, note kind, LSN and offset, and report it with the server's version; " +
		"a proxy between relay and server is a common cause"
	remedyUpgrade   = "use a walrelay that knows this server version; the slot keeps the position"
	remedyReconnect = "restart the source; if it comes back, report it with the server's version"
)

func newError(kind Kind, lsn event.LSN, c *cursor) error {
	e := &Error{Kind: kind, LSN: lsn, Offset: c.at, halt: event.Error{
		Class: event.Halt, Remedy: remedyReport, Anchor: AnchorMalformed,
	}}
	if c.fault == faultShort && len(c.src) == 0 {
		e.halt.What = fmt.Sprintf("replication message at LSN %s is empty", lsn)
		return e
	}
	head := fmt.Sprintf("replication message %s (kind byte 0x%02x) at LSN %s", kind, byte(kind), lsn)
	if c.relation != nil {
		head += fmt.Sprintf(" for relation %s", c.relation)
	}
	var what string
	switch c.fault {
	case faultShort:
		what = fmt.Sprintf("ends too early: byte %d begins a value of %d bytes and %d are left", c.at, c.want, c.got)
	case faultTail:
		what = fmt.Sprintf("is too long: %d bytes are left over at byte %d", c.got, c.at)
	case faultFlags:
		what = fmt.Sprintf("has the flags 0x%02x at byte %d, known are 0 to %d", c.got, c.at, c.want)
		e.halt.Anchor, e.halt.Remedy = AnchorUnknownMessage, remedyUpgrade
	case faultTuple:
		what = fmt.Sprintf("has the tuple mark 0x%02x at byte %d, which is unknown there", c.got, c.at)
		e.halt.Anchor, e.halt.Remedy = AnchorUnknownMessage, remedyUpgrade
	case faultForm:
		what = fmt.Sprintf("has a column value of the unknown form 0x%02x at byte %d", c.got, c.at)
		e.halt.Anchor, e.halt.Remedy = AnchorUnknownMessage, remedyUpgrade
	case faultColumns:
		what = fmt.Sprintf("has %d columns where the relation was announced with %d", c.got, c.want)
		e.halt.Remedy = remedyReconnect
	case faultRelation:
		what = fmt.Sprintf("is for relation id %d, which was not announced on this connection", c.got)
		e.halt.Remedy = remedyReconnect
	case faultKind:
		what = "is of a kind that this version does not know"
		e.halt.Anchor, e.halt.Remedy = AnchorUnknownMessage, remedyUpgrade
	case faultProtocol:
		what = fmt.Sprintf("belongs to protocol %d, the session speaks %d", c.want, c.got)
	case faultInside:
		what = "came between Stream Start and Stream Stop, where it does not belong"
	case faultOutside:
		what = "came without a Stream Start before it"
	}
	e.halt.What = head + " " + what
	return e
}
