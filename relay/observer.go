package relay

import "time"

// Observer hears what the corridor does, per batch and per transition, never
// per event. Every field may be nil; the calls must not block.
type Observer struct {
	// Received: a batch came from a source.
	Received func(source string, events int, bytes int64)
	// Published: a transaction with events is settled, and all before it.
	Published func(source string, events int, commitMicros int64)
	// Halted: a source stopped until an operator acts.
	Halted func(source string, err error)
	// Restarted: a source begins anew after an error of the Retry class.
	Restarted func(source string, err error)
	// ClockUnread: a source's clock could not be read for some seconds, which the order of stamps waits for.
	ClockUnread func(source string, err error)
	// ClockRead: after ClockUnread, it could be read again, or nobody needs it any more.
	ClockRead func(source string)
	// Stalled: the others go on without a source that has said nothing for so long.
	Stalled func(source string, still time.Duration)
	// Resumed: after Stalled, they wait for it again, or it has ended.
	Resumed func(source string)
	// FeederBeat and CommitterBeat: the loops step.
	FeederBeat    func(source string)
	CommitterBeat func()
}
