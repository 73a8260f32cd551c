package mongostream

import "github.com/walrelay/walrelay/event"

// Observer hears what happens to a stream. Every field may be nil. The calls
// come from the stream's own goroutines and must not block.
type Observer struct {
	// State is called when the state or its reason changes.
	State func(event.State, event.Condition)
	// Lag is called with what the server says of its oplog and of our place in it, on a timer.
	Lag func(event.StreamReport)
	// Warning is something an operator should know of that stops nothing; the
	// same key replaces its predecessor, an empty What takes it back.
	Warning func(key string, c event.Condition)
	// Ignored counts documents that are not events for us, by reason.
	Ignored func(reason string, n int)
	// Reconnect is called with the error that ended a session.
	Reconnect func(error)
	// Started is called when streaming began: after which token, and why there.
	Started func(at event.Position, note string)
	// PumpBeat and KeeperBeat are called by the two loops whenever they step.
	PumpBeat, KeeperBeat func()
}
