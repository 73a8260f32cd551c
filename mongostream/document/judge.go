package document

import "github.com/walrelay/walrelay/event"

// Outcome is what becomes of an inserted document.
type Outcome uint8

// The outcomes.
const (
	// Refused: Event.Refused says why. (An ignored document may have it set, too.)
	Refused Outcome = iota
	// Publish: the event is complete.
	Publish
	// Deferred: pending, but not due yet when it was committed. It stays in the
	// collection and is the sweep's.
	Deferred
	// IgnoredStatus: inserted in another state than pending.
	IgnoredStatus
	// IgnoredPublished: inserted with its time of publishing set.
	IgnoredPublished
)

// Ignored reports whether nothing is to be done, now or later.
func (o Outcome) Ignored() bool { return o >= IgnoredStatus }

// String is a word for logs and labels; for an ignored document it is the reason.
func (o Outcome) String() string {
	return [...]string{"refused", "publish", "deferred", "status", "published"}[min(o, IgnoredPublished)]
}

const pending = "pending"

// judge decides by the fields that say whether a document is to be published: its
// state, its time of publishing, and the time before which it must not be.
//
// "Due" is judged by the commit time and not by a clock, so that the answer is the
// same whenever the stream is read. Absent and null never stand in the way.
func (a *appending) judge() Outcome {
	switch ev := a.ev; {
	case ev.Fields[event.Status] != nil && string(ev.Fields[event.Status]) != pending:
		return IgnoredStatus // somebody else's already, whatever is wrong with it
	case ev.Fields[event.PublishedAt] != nil:
		return IgnoredPublished
	case ev.Refused != nil:
		return Refused
	case a.timed && a.due > floorMillis(ev.CommitMicros):
		return Deferred
	}
	return Publish
}

func floorMillis(micros int64) int64 {
	ms := micros / 1000
	if micros < 0 && micros%1000 != 0 {
		ms--
	}
	return ms
}
