package decoder

import (
	"errors"

	"github.com/walrelay/walrelay/event"
)

const pending = "pending"

var errAvailableAt = errors.New("available_at is no timestamp in ISO form")

// judge decides by the fields that say whether a row is to be published: its
// state, its time of publishing, and the time before which it must not be.
//
// "Due" is judged by the commit time and not by a clock, so that the answer is
// the same whenever the log is read. Absent and NULL never stand in the way.
func (m *Mapper) judge(ev *event.Event) (Outcome, error) {
	if s := ev.Fields[event.Status]; s != nil && string(s) != pending {
		return IgnoredStatus, nil
	}
	if ev.Fields[event.PublishedAt] != nil {
		return IgnoredPublished, nil
	}
	if at := ev.Fields[event.AvailableAt]; at != nil {
		micros, ok := parseTimestamp(at)
		if !ok {
			return Refused, errAvailableAt
		}
		if micros > ev.CommitMicros {
			return Deferred, nil
		}
	}
	return Publish, nil
}
