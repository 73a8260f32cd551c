package mongostream

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

const (
	// quietAfter is how long a stream may bring no new position while the log grows.
	quietAfter = 5 * time.Minute
	// soon is when a lost position is near, whatever the room is now.
	soon = time.Hour
)

// The keys of a monitor's warnings.
const (
	warnHeadroom = "headroom"
	warnMajority = "majority"
	warnQuiet    = "quiet"
)

// Warnings are what a report has to say to an operator, by a key for each; an empty condition takes back what
// stood under the key.
func Warnings(r event.StreamReport) map[string]event.Condition {
	w := map[string]event.Condition{warnHeadroom: {}, warnMajority: {}, warnQuiet: {}}
	if r.MajorityLag > stalledAfter {
		w[warnMajority] = event.Condition{
			What:   fmt.Sprintf("stalled: majority: the newest write is %v ahead of what a majority of the members has, and change streams bring nothing beyond that", r.MajorityLag),
			Remedy: "see with rs.status() which data-bearing members are down or behind; arbiters do not count",
			Anchor: AnchorMajority,
		}
	}
	if r.StillFor > quietAfter {
		w[warnQuiet] = event.Condition{
			What:   fmt.Sprintf("the change stream has brought no new position for %v, while the log grew to %v beyond it", r.StillFor.Round(time.Second), r.StreamLag),
			Remedy: "wait, if somebody has written much to other collections: the server reads through all of it; otherwise see with db.currentOp() what the server does for us, and restart the relay",
			Anchor: AnchorQuiet,
		}
	}
	w[warnHeadroom] = headroom(r)
	return w
}

func headroom(r event.StreamReport) event.Condition {
	if !r.Cut || r.Headroom == event.Unmeasured || r.OplogWindow == event.Unmeasured {
		return event.Condition{} // an oplog that is not full is cut nowhere
	}
	part := share(r.Headroom, r.OplogWindow)
	eta := ""
	if r.HeadroomETA != event.Unmeasured {
		eta = fmt.Sprintf("; at this pace it is lost in %v", r.HeadroomETA.Round(time.Minute))
	}
	c := event.Condition{
		What:   fmt.Sprintf("the position is %v before the end of the oplog's %v (%.0f %%)%s", r.Headroom, r.OplogWindow, part*100, eta),
		Remedy: "find out what holds the relay back: broker, lag, parked events; enlarge the oplog meanwhile (replSetResizeOplog)",
		Anchor: AnchorHeadroom,
	}
	switch {
	case part < critical, r.HeadroomETA != event.Unmeasured && r.HeadroomETA < soon:
		c.What = "critical: " + c.What
		c.Remedy = "enlarge the oplog now: db.adminCommand({replSetResizeOplog: 1, size: <MB>, minRetentionHours: <hours>}) on every member; then find out what holds the relay back"
	case part < scarce:
	default:
		return event.Condition{}
	}
	return c
}
