package event

import "time"

// Unmeasured stands for a figure of a StreamReport that the server does not tell, or not us.
const Unmeasured time.Duration = -1

// StreamReport is what a MongoDB server says of its oplog and of a change stream's place
// in it; read on a timer. Each figure may be Unmeasured.
type StreamReport struct {
	// StreamLag is how far the newest token that was read is behind the majority point.
	StreamLag time.Duration
	// CheckpointLag is how far the remembered position is behind the majority point.
	CheckpointLag time.Duration
	// MajorityLag is how far the majority point is behind the newest write.
	MajorityLag time.Duration
	// OplogWindow is the age of the oldest oplog entry against the newest.
	OplogWindow time.Duration
	// Headroom is how far the remembered position is ahead of the oldest oplog entry: at
	// zero the position is lost.
	Headroom time.Duration
	// HeadroomETA is when the headroom will be used up if the oplog goes on being cut, and the position being
	// written, as since the report before; Unmeasured also while it does not shrink.
	HeadroomETA time.Duration
	// ClockOffset is the server's clock minus ours.
	ClockOffset time.Duration
	// Majority is the majority point as a position: everything at or before it is below.
	Majority Position
	// Received and Confirmed are the tokens that the lags were taken from.
	Received, Confirmed Position
	// Primary is the member that was asked.
	Primary string
	At      time.Time
}
