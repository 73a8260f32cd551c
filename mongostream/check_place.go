package mongostream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// stalledAfter is how far the majority may be behind the newest write before something is wrong.
const stalledAfter = 30 * time.Second

// scarce and critical are the parts of the oplog's window that a position should have before it.
const (
	scarce   = 0.5
	critical = 0.2
)

func (v *inventory) majorityFinding() event.Finding {
	const setting, needs = "majority", "of the members have the newest writes"
	lag := between(v.Majority, v.Applied)
	if lag > stalledAfter {
		return event.Warned(setting, fmt.Sprintf("%v behind the newest write", lag), needs,
			"see with rs.status() which data-bearing members are down or behind: change streams are silent until a majority of the voting members has a write, and arbiters have none")
	}
	return event.Fine(setting, fmt.Sprintf("%v behind the newest write", lag), needs)
}

func oplogFinding(l oplog, err error, least time.Duration) event.Finding {
	setting, needs := "oplog window", fmt.Sprintf("%v or more", least)
	const remedy = "enlarge the oplog, or give it a least age: db.adminCommand({replSetResizeOplog: 1, size: <MB>, minRetentionHours: <hours>}) on every member; a relay that stays away longer than the window loses its position"
	switch {
	case errors.Is(err, errHidden):
		return event.Warned(setting, "not known", needs,
			`grant find on local.oplog.rs (resource {db: "local", collection: "oplog.rs"}) or the role clusterMonitor: until then nothing warns before the position is lost`)
	case err != nil:
		return event.Warned(setting, "not known: "+asError(err).What, needs, asError(err).Remedy)
	case l.young():
		return event.Fine(setting, fmt.Sprintf("%v so far, the oplog is %d %% full", l.window(), l.Size*100/l.Max), needs)
	case l.window() < least:
		return event.Warned(setting, l.window().String(), needs, remedy)
	}
	return event.Fine(setting, l.window().String(), needs)
}

// positionFindings are what a start now would find, and how much room the position has.
func (v *inventory) positionFindings(ctx context.Context, client *mongo.Client, o *Options, log oplog, logKnown bool) []event.Finding {
	const setting, needs = "position", "remembered, and in the oplog"
	r, active, err := Assess(ctx, client, *o)
	if err != nil {
		return []event.Finding{event.Explained(setting, "", needs, asError(err))}
	}
	at := tokenTime(r.Data)
	if active && logKnown && log.Oldest.After(at) {
		// A reader that halted has the lease for a while. The oplog was read first: what it had lost was lost then.
		e := gap(AnchorPositionLost, fmt.Sprintf("the oplog begins at %s, after the remembered position, %s", clock(log.Oldest), clock(at)), remedyLost)
		return []event.Finding{event.Explained(setting, "", needs, e)}
	}
	findings := []event.Finding{event.Fine(setting, fmt.Sprintf("%s, %v before the newest write (%s)", clock(at), between(at, v.Applied), r.Phase), needs)}
	if active {
		findings = append(findings, event.Fine("reader", r.Holder, "at most one at a time"))
	}
	if logKnown {
		findings = append(findings, roomFinding(between(log.Oldest, at), log))
	}
	return findings
}

func roomFinding(room time.Duration, log oplog) event.Finding {
	const setting = "position's headroom"
	needs := fmt.Sprintf("more than %.0f %% of the oplog's window", scarce*100)
	is := fmt.Sprintf("%v of %v", room, log.window())
	if part := share(room, log.window()); part < scarce && !log.young() {
		return event.Warned(setting, is, needs, "start the relay, or find out what holds it back; enlarge the oplog meanwhile")
	}
	return event.Fine(setting, is, needs)
}

// share is the part of the window that the room makes up; 1 where there is no window yet.
func share(room, window time.Duration) float64 {
	if window <= 0 {
		return 1
	}
	return float64(room) / float64(window)
}

// visibilityFinding says whether the beginning of every open transaction can be seen.
func visibilityFinding(ctx context.Context, client *mongo.Client) event.Finding {
	const setting, needs = "open transactions", "seen, for order: hlc"
	_, err := oldestTransaction(ctx, client, time.Now())
	switch {
	case forbidden(err):
		return event.Warned(setting, "those of other users are hidden", needs,
			`grant the action inprog on the cluster (the role clusterMonitor has it); until then each event waits for order.transaction`)
	case err != nil:
		return event.Explained(setting, "cannot be read", needs, asError(Classify(err, "looking at the open transactions")))
	}
	return event.Fine(setting, "can be seen", needs)
}
