package hlc

import (
	"fmt"
	"time"
)

// DriftError says that a remote stamp is too far ahead of the wall clock to be
// taken in: some clock is wrong, or the stamp is forged. The caller counts it, and
// handles the event without it.
type DriftError struct {
	Remote   Stamp
	Wall     time.Time // what the wall clock showed
	MaxDrift time.Duration
}

func (e *DriftError) Error() string {
	return fmt.Sprintf("stamp %s (%s) is %s ahead of the wall clock at %s, more than the %s allowed",
		e.Remote, utc(time.UnixMilli(e.Remote.PhysicalMillis())), e.ahead(), utc(e.Wall), e.MaxDrift)
}

// ahead is how far; a year is as much as a duration can say of the forged ones.
func (e *DriftError) ahead() string {
	const year = 365 * 24 * time.Hour
	if ms := e.Remote.PhysicalMillis() - e.Wall.UnixMilli(); ms < year.Milliseconds() {
		return (time.Duration(ms) * time.Millisecond).String()
	}
	return "years"
}

// RangeError says that a mark is above [MaxClock], where no clock can have been.
type RangeError struct {
	Mark Stamp
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("mark %d (%s) is above %d, the greatest that a clock can have left: it is damaged or no stamp",
		uint64(e.Mark), e.Mark, uint64(MaxClock))
}

func utc(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
