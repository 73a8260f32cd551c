package slot

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/walrelay/walrelay/event"
)

// NoBookkeeping as Options.Bookkeeping keeps walrelay from writing to the
// database: there is no marker, so a gap between two runs goes unnoticed.
const NoBookkeeping = "none"

// maxName is NAMEDATALEN-1 of a stock server build: longer names are cut short in silence.
const maxName = 63

// Options say which log is read, and how. The zero values of everything below
// Tables and Messages get their defaults from WithDefaults.
type Options struct {
	// Source is the name in the configuration.
	Source string
	// Marker is the key of the marker's row; it must differ between two relays on one
	// database (Source).
	Marker string
	// DSN is a URL or keyword connection string. It may hold a password: it is never printed.
	DSN string
	// Slot and Publication default to walrelay_<source>.
	Slot        string
	Publication string
	// Tables and Messages (prefixes of logical messages); at least one of the two.
	Tables   []Table
	Messages []string
	// AllowNonTransactional lets messages through that were emitted outside of a
	// transaction: they survive a rollback and may overtake their transaction.
	AllowNonTransactional bool
	Schema                event.Schema
	// ExtraColumns are published besides the mapped ones, for additional headers.
	ExtraColumns []string
	// Capture says how events are found (CaptureLog). Where it is CapturePoll, slot and
	// publication are neither made nor asked for.
	Capture Capture
	// OnGap says what happens when the position is lost (GapStop).
	OnGap OnGap
	// WriteBack says what is written to a published row (KeepRows).
	WriteBack WriteBack
	// ClaimRows: a claim is written into the row.
	ClaimRows bool
	// Retains: published rows that are old are deleted.
	Retains bool
	// Notify has inserts announced on the channel NotifyChannel.
	Notify bool
	// Ordered: events are put in the order of their stamps, for which the server's clock and
	// its open transactions are read. Producers are the roles that write events; empty: any.
	Ordered   bool
	Producers []string
	// Failover asks for a slot that is carried over to standbys (Postgres 17 and later).
	Failover bool
	// HaltOnPrecondition ends the stream when something is missing on the server,
	// instead of looking for it again and again.
	HaltOnPrecondition bool
	// Temporary reads through a slot that is made for the connection and goes with
	// it, from now on: for looking, not for relaying. Nothing is remembered.
	Temporary bool
	// AllowRowFilter accepts a publication that leaves rows out.
	AllowRowFilter bool
	// Bookkeeping is the name of walrelay's own schema; NoBookkeeping or empty: none.
	Bookkeeping string
	// Role is the role that the relay logs in with, for the grants of init; empty:
	// init runs as that role itself.
	Role string

	// StatusInterval is the longest time between two status messages (10 s; the
	// stream takes a third of wal_sender_timeout where that is shorter).
	StatusInterval time.Duration
	// CheckInterval is the time between two looks at the publication and the slot (10 s).
	CheckInterval time.Duration
	// WireTimeout is how long the server may say nothing although it was asked,
	// before the connection counts as dead (15 s).
	WireTimeout time.Duration
	// ReconnectMin and ReconnectMax bound the pause before the next attempt (100 ms, 5 s).
	ReconnectMin, ReconnectMax time.Duration
	// MaxEventBytes is the largest payload that is read; a larger one is elided (64 MiB).
	MaxEventBytes int64
	// InFlightBytes bounds the memory of events that are not acknowledged yet (32 MiB).
	InFlightBytes int64
	// ApplicationName is what the server shows for us (walrelay/<source>).
	ApplicationName string
	// Dial replaces the network in tests.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// WithDefaults fills what was left out.
func (o Options) WithDefaults() Options {
	def := "walrelay_" + slotAlphabet(o.Source)
	fill(&o.Capture, CaptureLog)
	fill(&o.OnGap, GapStop)
	fill(&o.WriteBack, KeepRows)
	fill(&o.Slot, def)
	fill(&o.Publication, def)
	fill(&o.StatusInterval, 10*time.Second)
	fill(&o.CheckInterval, 10*time.Second)
	fill(&o.WireTimeout, 15*time.Second)
	fill(&o.ReconnectMin, 100*time.Millisecond)
	fill(&o.ReconnectMax, 5*time.Second)
	fill(&o.MaxEventBytes, 64<<20)
	fill(&o.InFlightBytes, 32<<20)
	fill(&o.Marker, o.Source)
	fill(&o.ApplicationName, cut("walrelay/"+o.Source))
	return o
}

func fill[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// slotAlphabet maps a source's name to the letters that a slot's name may have.
func slotAlphabet(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, s)
	return s[:min(len(s), maxName-len("walrelay_"))]
}

// cut shortens a name as the server would, but never within a letter.
func cut(s string) string {
	if len(s) <= maxName {
		return s
	}
	n := maxName
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// keepsBooks reports whether walrelay has a schema of its own.
func (o *Options) keepsBooks() bool { return o.Bookkeeping != "" && o.Bookkeeping != NoBookkeeping }

// writesMarker reports whether there is a place for the marker, and a position to remember.
func (o *Options) writesMarker() bool { return o.keepsBooks() && !o.polls() }

var slotName = regexp.MustCompile(`^[a-z0-9_]{1,63}$`)

// Validate says what is wrong with the options, defaults filled in, without
// asking the server.
func (o *Options) Validate() error {
	bad := func(format string, a ...any) error {
		return &event.Error{
			Class: event.Halt, Fault: event.FaultUsage, Anchor: AnchorOptions,
			What:   fmt.Sprintf("source %q: ", o.Source) + fmt.Sprintf(format, a...),
			Remedy: "correct the configuration of the source",
		}
	}
	switch {
	case o.Source == "":
		return bad("the source has no name")
	case o.DSN == "":
		return bad("the connection string is empty")
	case !slotName.MatchString(o.Slot):
		return bad("slot %q is impossible: Postgres allows 1 to 63 of the letters a-z, digits and _ in the name of a slot", o.Slot)
	case len(o.Tables) == 0 && len(o.Messages) == 0:
		return bad("neither a table nor a message prefix is given")
	case o.WireTimeout < 0 || o.StatusInterval < 0 || o.CheckInterval < 0:
		return bad("a negative time is given")
	case o.ReconnectMin > o.ReconnectMax:
		return bad("the shortest pause before a reconnect, %v, is longer than the longest, %v", o.ReconnectMin, o.ReconnectMax)
	case o.MaxEventBytes < 0 || o.InFlightBytes < 0:
		return bad("a negative number of bytes is given")
	}
	if _, err := ParseDSN(o.DSN); err != nil {
		return err
	}
	names := map[string]string{"publication": o.Publication}
	if o.keepsBooks() {
		names["bookkeeping schema"] = o.Bookkeeping
	}
	for what, name := range names {
		if why := badName(name); why != "" {
			return bad("%s %q %s", what, name, why)
		}
	}
	seen := map[string]bool{}
	for _, t := range o.Tables {
		for _, name := range []string{t.Schema, t.Name} {
			if why := badName(name); why != "" {
				return bad("table %s: the name %q %s", t, name, why)
			}
		}
		if seen[t.SQL()] {
			return bad("table %s is listed twice", t)
		}
		seen[t.SQL()] = true
	}
	if len(o.Tables) > 0 && o.Schema.Preset == "" {
		return bad("tables are given, but no schema says what their columns mean")
	}
	return o.validateLists(bad)
}

func (o *Options) validateLists(bad func(string, ...any) error) error {
	seen := map[string]bool{}
	for _, c := range o.ExtraColumns {
		if why := badName(c); why != "" {
			return bad("extra column %q %s", c, why)
		}
		if seen[c] {
			return bad("extra column %q is listed twice", c)
		}
		seen[c] = true
	}
	prefixes := map[string]bool{}
	for _, p := range o.Messages {
		switch {
		case p == "":
			return bad("a message prefix is empty")
		case strings.IndexByte(p, 0) >= 0 || !utf8.ValidString(p):
			return bad("message prefix %q cannot occur: a prefix is text without NUL", p)
		case prefixes[p]:
			return bad("message prefix %q is listed twice", p)
		}
		prefixes[p] = true
	}
	return nil
}

func badName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxName:
		return fmt.Sprintf("has %d bytes: Postgres cuts names after %d", len(name), maxName)
	case strings.IndexByte(name, 0) >= 0:
		return "holds a NUL"
	}
	return ""
}

// String names the source and leaves the connection string out.
func (o Options) String() string {
	return fmt.Sprintf("source %s: slot %s, publication %s, tables %v, messages %q", o.Source, o.Slot, o.Publication, o.Tables, o.Messages)
}

// GoString is String, for %#v.
func (o Options) GoString() string { return o.String() }
