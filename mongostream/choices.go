package mongostream

// Capture is how the events of a source are found.
type Capture string

// The ways. Empty means CaptureStream.
const (
	CaptureStream Capture = "stream" // from a change stream
	CapturePoll   Capture = "poll"   // from the collection
	CaptureAuto   Capture = "auto"   // from a change stream, and from the collection while there can be none
)

// OnGap says what happens when the position is lost.
type OnGap string

// The choices. Empty means GapStop.
const (
	GapStop    OnGap = "stop"
	GapCatchUp OnGap = "catch_up" // a new position, all pending documents, then the stream
)

// WriteBack says what the relay writes to a document once it is published; it decides
// which rights are needed on the collection.
type WriteBack string

// The choices. Empty means KeepRows.
const (
	KeepRows   WriteBack = "keep"
	MarkRows   WriteBack = "mark"
	DeleteRows WriteBack = "delete"
)

// OnDrop says what happens when the collection is dropped or renamed under the stream.
type OnDrop string

// The choices. Empty means DropStop.
const (
	DropStop     OnDrop = "stop"
	DropContinue OnDrop = "continue" // with the next collection of that name
)

// MissingHLC is the place of documents without a stamp in the order of the collection.
type MissingHLC string

// The places. Empty means HLCFirst, which is the order that the server itself has.
const (
	HLCFirst MissingHLC = "first"
	HLCLast  MissingHLC = "last"
)

// polls reports whether no stream is ever read, so that there is no position.
func (o *Options) polls() bool { return o.Capture == CapturePoll }

// keepsBooks reports whether walrelay has collections of its own.
func (o *Options) keepsBooks() bool { return o.Bookkeeping != "" && o.Bookkeeping != NoBookkeeping }

// writesRecord reports whether there is a place for the position's record, and a position to remember.
func (o *Options) writesRecord() bool { return o.keepsBooks() && !o.polls() && !o.Peek }

// writesRows reports whether documents are changed once they are published.
func (o *Options) writesRows() bool { return o.WriteBack == MarkRows || o.WriteBack == DeleteRows }

// claims reports whether documents of the collection may be claimed: instead of the stream,
// before it, or beside it.
func (o *Options) claims() bool { return o.keepsBooks() && o.writesRows() }

// makesUpForGaps: on a lost position the relay begins anew with what is pending in the collection.
func (o *Options) makesUpForGaps() bool {
	return o.claims() && (o.OnGap == GapCatchUp || o.Capture == CaptureAuto)
}

// SourcesCollection is where the records of positions are.
func (o *Options) SourcesCollection() string { return o.Bookkeeping + "_sources" }

// ParkedCollection is where events are that were put aside.
func (o *Options) ParkedCollection() string { return o.Bookkeeping + "_parked" }

// LeasesCollection says who claims which shard.
func (o *Options) LeasesCollection() string { return o.Bookkeeping + "_leases" }
