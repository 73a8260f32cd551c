package event

// Phase is how a source was read last, as its position's record says. The empty
// phase: there is no record.
type Phase string

// The phases.
const (
	// PhaseCreated: the position was made and nothing has been streamed yet.
	PhaseCreated Phase = "created"
	// PhasePolled: the table was read in place of the log, past the position.
	PhasePolled Phase = "polled"
	// PhaseStreaming: the log is followed.
	PhaseStreaming Phase = "streaming"
)
