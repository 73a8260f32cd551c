package mongostream

import (
	"fmt"
	"strings"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

// NoBookkeeping as Options.Bookkeeping keeps walrelay from writing to the
// database: there is no record of the position, so each start begins at the present.
const NoBookkeeping = "none"

// Options say which collection is followed, and how. The zero values of everything
// below Schema get their defaults from WithDefaults.
type Options struct {
	// Source is the name in the configuration.
	Source string
	// Marker is the key of the position's record; it must differ between two relays on one
	// database (Source).
	Marker string
	// URL is a connection string, mongodb:// or mongodb+srv://. It may hold a password: it is never printed.
	URL string
	// Database and Collection hold the outbox documents.
	Database, Collection string
	// Schema says which field of a document means what.
	Schema event.Schema
	// Extra are fields that are carried besides the mapped ones, for additional headers.
	Extra []string
	// Format is how payloads are written that are documents or arrays.
	Format bsonjson.Options

	// Bookkeeping begins the names of walrelay's own collections (walrelay); NoBookkeeping: none.
	Bookkeeping string
	// Capture says how events are found (CaptureStream).
	Capture Capture
	// OnGap says what happens when the position is lost (GapStop).
	OnGap OnGap
	// WriteBack says what is written to a published document (KeepRows).
	WriteBack WriteBack
	// OnDrop says what happens when the collection is dropped or renamed (DropStop).
	OnDrop OnDrop
	// MissingHLC is where documents without a stamp are sorted (HLCFirst).
	MissingHLC MissingHLC
	// Retains: published documents that are old are deleted.
	Retains bool
	// Ordered: events are put in the order of their stamps, for which the server's clock and
	// its open transactions are read.
	Ordered bool
	// Peek reads from the remembered position without taking the source: nothing is written, and
	// whoever reads it goes on doing so.
	Peek bool
	// HaltOnPrecondition ends the stream when something is missing on the server,
	// instead of looking for it again and again.
	HaltOnPrecondition bool

	// BatchSize is the largest number of events that is asked for at a time (1000).
	BatchSize int32
	// MaxAwait is how long the server waits for an event before it answers without (1 s).
	MaxAwait time.Duration
	// CheckpointEvery is the shortest time between two writes of the position (1 s).
	CheckpointEvery time.Duration
	// CheckInterval is the time between two looks at the lag and at the position's room (10 s).
	CheckInterval time.Duration
	// MinOplogWindow is the age of the oldest oplog entry below which check warns (24 h).
	MinOplogWindow time.Duration
	// LeaseTTL is how long a reader that says nothing keeps the source to itself (6 s).
	LeaseTTL time.Duration
	// WireTimeout is how long a short command may take: positions, leases, figures (15 s). It
	// never bounds the iteration of the stream.
	WireTimeout time.Duration
	// ReconnectMin and ReconnectMax bound the pause before the next attempt (100 ms, 5 s).
	ReconnectMin, ReconnectMax time.Duration
	// MaxEventBytes is the largest payload that is taken, in bytes of BSON; a larger one is elided (64 MiB).
	MaxEventBytes int64
	// InFlightBytes bounds the memory of events that are not acknowledged yet (32 MiB).
	InFlightBytes int64
	// Holder is this process's name in leases, unique among all that read the source.
	Holder string
	// AppName is what the server shows for us (walrelay/<source>).
	AppName string
}

// WithDefaults fills what was left out.
func (o Options) WithDefaults() Options {
	fill(&o.Marker, o.Source)
	fill(&o.AppName, cut("walrelay/"+o.Source, maxAppName))
	fill(&o.Bookkeeping, "walrelay")
	fill(&o.Capture, CaptureStream)
	fill(&o.OnGap, GapStop)
	fill(&o.WriteBack, KeepRows)
	fill(&o.OnDrop, DropStop)
	fill(&o.MissingHLC, HLCFirst)
	fill(&o.BatchSize, 1000)
	fill(&o.MaxAwait, time.Second)
	fill(&o.CheckpointEvery, time.Second)
	fill(&o.CheckInterval, 10*time.Second)
	fill(&o.MinOplogWindow, 24*time.Hour)
	fill(&o.LeaseTTL, 6*time.Second)
	fill(&o.WireTimeout, 15*time.Second)
	fill(&o.ReconnectMin, 100*time.Millisecond)
	fill(&o.ReconnectMax, 5*time.Second)
	fill(&o.MaxEventBytes, 64<<20)
	fill(&o.InFlightBytes, 32<<20)
	return o
}

func fill[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// maxAppName is what servers accept (MongoDB handshake specification).
const maxAppName = 128

// cut shortens a name, but never within a letter.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// Namespace is database.collection, for messages to people.
func (o *Options) Namespace() string { return o.Database + "." + o.Collection }

// Validate says what is wrong with the options, defaults filled in, without
// asking the server.
func (o *Options) Validate() error {
	bad := func(format string, a ...any) error {
		return usage(fmt.Sprintf("source %q: ", o.Source)+fmt.Sprintf(format, a...), "correct the configuration of the source")
	}
	switch {
	case o.Source == "":
		return bad("the source has no name")
	case o.URL == "":
		return bad("the URL is empty")
	case o.Schema.Columns[event.Payload] == "":
		return bad("no schema says which field of a document is the payload")
	case o.BatchSize < 0:
		return bad("a negative batch size is given")
	case min(o.MaxAwait, o.CheckpointEvery, o.CheckInterval, o.MinOplogWindow, o.LeaseTTL, o.WireTimeout, o.ReconnectMin) < 0:
		return bad("a negative time is given")
	case o.ReconnectMin > o.ReconnectMax:
		return bad("the shortest pause before a reconnect, %v, is longer than the longest, %v", o.ReconnectMin, o.ReconnectMax)
	case o.MaxEventBytes < 0 || o.InFlightBytes < 0:
		return bad("a negative number of bytes is given")
	}
	if err := o.ValidateURL(); err != nil {
		return err
	}
	if why := badDatabase(o.Database); why != "" {
		return bad("database %q %s", o.Database, why)
	}
	names := []string{o.Collection}
	if o.keepsBooks() {
		names = append(names, o.SourcesCollection(), o.ParkedCollection(), o.LeasesCollection())
	}
	for i, name := range names {
		if why := badCollection(o.Database, name); why != "" {
			return bad("collection %q %s", name, why)
		}
		if i > 0 && name == o.Collection {
			return bad("collection %q is one of walrelay's own: give bookkeeping another name", name)
		}
	}
	seen := map[string]bool{}
	for _, f := range o.Extra {
		switch {
		case f == "" || strings.IndexByte(f, 0) >= 0:
			return bad("extra field %q is no name of a field", f)
		case seen[f]:
			return bad("extra field %q is listed twice", f)
		}
		seen[f] = true
	}
	return nil
}

// badDatabase says why a database cannot have the name (MongoDB manual, "Naming Restrictions").
func badDatabase(name string) string {
	switch {
	case name == "":
		return "has no name"
	case len(name) > 63:
		return fmt.Sprintf("has %d bytes: MongoDB allows 63", len(name))
	case strings.ContainsAny(name, "/\\. \"$\x00"):
		return `holds one of / \ . " $, a space or a NUL`
	case name == "local":
		return "is never replicated, so that there is no change stream over it"
	}
	return ""
}

func badCollection(database, name string) string {
	switch {
	case name == "":
		return "has no name"
	case len(database)+1+len(name) > 255:
		return fmt.Sprintf("has a full name of %d bytes: MongoDB allows 255", len(database)+1+len(name))
	case strings.ContainsAny(name, "$\x00"):
		return "holds a $ or a NUL"
	case strings.HasPrefix(name, "system."):
		return "belongs to the server: it begins with system."
	}
	return ""
}

// String names the source and leaves the URL out.
func (o Options) String() string {
	return fmt.Sprintf("source %s: collection %s, capture %s", o.Source, o.Namespace(), o.Capture)
}

// GoString is String, for %#v.
func (o Options) GoString() string { return o.String() }
