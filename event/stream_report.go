package event

import "time"

// Unmeasured stands for a figure of a StreamReport that the server does not tell, or not us.
const Unmeasured time.Duration = -1

// StreamReport is what a MongoDB server says of its oplog, and of a change stream's place
// in it; read on a timer. Each figure but the last three may be Unmeasured.
type StreamReport struct {
	// StreamLag is how far the newest token that was read is behind the majority point,
	// beyond which no change stream goes.
	StreamLag time.Duration
	// CheckpointLag is how far the remembered position is behind the majority point.
	CheckpointLag time.Duration
	// MajorityLag is how far the majority point is behind the newest write.
	MajorityLag time.Duration
	// OplogWindow is the time between the oldest entry of the oplog and the newest.
	OplogWindow time.Duration
	// Headroom is how far the remembered position is ahead of the oldest entry; the position is lost at zero.
	Headroom time.Duration
	// HeadroomETA is when that will be if the oplog goes on being cut, and the position moving, as in the
	// last minute; Unmeasured also while the room does not shrink.
	HeadroomETA time.Duration
	// Cut: the oplog is full, so that old entries go.
	Cut bool
	// StillFor is how long the stream has brought no new position although there was one to bring.
	StillFor time.Duration
	// ClockOffset is how far the server's clock is ahead of ours.
	ClockOffset time.Duration
	// Majority is the majority point as a position: everything up to it is below.
	Majority Position
	// Member is the member that was asked, the primary.
	Member string
	At     time.Time
}
