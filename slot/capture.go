package slot

import (
	"fmt"
	"hash/fnv"
)

// Capture is how the events of a source are found.
type Capture string

// The ways. Empty means CaptureLog.
const (
	CaptureLog  Capture = "log"  // from the write-ahead log
	CapturePoll Capture = "poll" // from the table
	CaptureAuto Capture = "auto" // from the log, and from the table while the slot cannot be used
)

// OnGap says what happens when the position is lost.
type OnGap string

// The choices. Empty means GapStop.
const (
	GapStop    OnGap = "stop"
	GapCatchUp OnGap = "catch_up" // a new slot, all pending rows of the table, then the log
)

// WriteBack says what the relay writes to a row once it is published; it decides
// which rights are needed on the tables.
type WriteBack string

// The choices. Empty means KeepRows.
const (
	KeepRows   WriteBack = "keep"
	MarkRows   WriteBack = "mark"
	DeleteRows WriteBack = "delete"
)

// polls reports whether the log is never read: no slot, no publication.
func (o *Options) polls() bool { return o.Capture == CapturePoll }

// wakes reports whether inserts are to be announced.
func (o *Options) wakes() bool { return o.Notify && o.keepsBooks() && o.Capture != CaptureLog }

// claims reports whether rows of the tables may be claimed: instead of the log,
// before it, or beside it.
func (o *Options) claims() bool {
	return len(o.Tables) > 0 && o.keepsBooks() && (o.WriteBack == MarkRows || o.WriteBack == DeleteRows)
}

// makesUpForGaps: on a lost position the relay begins anew with what is pending in the table.
func (o *Options) makesUpForGaps() bool {
	return o.claims() && (o.OnGap == GapCatchUp || o.Capture == CaptureAuto)
}

// NotifyChannel is the channel that inserts into the tables are announced on
// where Notify is set, and the name of the trigger that does it.
func (o *Options) NotifyChannel() string { return notifyChannel(o.Marker) }

// notifyChannel keeps two long owners apart: Postgres refuses a channel of more
// than 63 bytes, and a name that is cut ends in a hash.
func notifyChannel(owner string) string {
	name := "walrelay_" + owner
	if len(name) <= maxName {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("%s_%08x", name[:maxName-9], h.Sum32())
}
