package relay

import "github.com/walrelay/walrelay/event"

// Observer hears what the corridor does, per batch and per transition, never
// per event. Every field may be nil; the calls must not block.
type Observer struct {
	// Received: a batch came from a source.
	Received func(source string, events int, bytes int64)
	// Committed: the newest complete transaction of a batch, by the server's clock.
	Committed func(source string, unixMicros int64)
	// Published: everything up to pos is acknowledged.
	Published func(source string, pos event.Position)
	// Halted: a source stopped until an operator acts.
	Halted func(source string, err error)
	// Restarted: a source begins anew after an error of the Retry class.
	Restarted func(source string, err error)
	// FeederBeat and CommitterBeat: the loops step.
	FeederBeat    func(source string)
	CommitterBeat func()
}
