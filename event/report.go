package event

import "time"

// State is what a source is doing, in the words of the status page.
type State string

// The states.
const (
	StateStarting     State = "starting"
	StateConnecting   State = "connecting"
	StateStandby      State = "standby" // another relay holds the slot
	StateStreaming    State = "streaming"
	StateDraining     State = "draining"
	StateStopped      State = "stopped"
	StateHalted       State = "halted" // an operator must act
	StateDisconnected State = "disconnected"
)

// Condition is one reason why a source or the broker is not ready. An empty
// What means that all is well.
type Condition struct {
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"`
	Anchor Anchor `json:"anchor,omitempty"`
}

// Progress is the ladder of positions of one source, read from atomics at any time.
// Server ≥ Sent ≥ Received ≥ Published ≥ Confirmed, except for the moments between two reads.
type Progress struct {
	Server    LSN // end of the server's log, from its last message to us
	Received  LSN // end of the last complete transaction or keepalive taken from the socket
	Published LSN // everything at or below is acknowledged by Kafka
	Confirmed LSN // told to the server
}

// SlotReport is what the server says of its slot; read on a timer.
type SlotReport struct {
	Slot          string    `json:"slot"`
	Active        bool      `json:"active"`
	WALStatus     string    `json:"wal_status"`
	Invalidation  string    `json:"invalidation_reason,omitempty"`
	RetainedBytes int64     `json:"retained_bytes"`
	SafeBytes     int64     `json:"safe_bytes"` // -1: no limit is set
	ServerHead    LSN       `json:"-"`
	SentLSN       LSN       `json:"-"`
	ConfirmedLSN  LSN       `json:"-"`
	RestartLSN    LSN       `json:"-"`
	SpillTxns     int64     `json:"spill_txns"`
	SpillBytes    int64     `json:"spill_bytes"`
	At            time.Time `json:"at"`
}
