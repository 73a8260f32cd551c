package decoder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// MapperOptions say which rows and messages are events, and how to read them.
type MapperOptions struct {
	Schema event.Schema
	// Tables are the outbox tables, by the names that the stream announces: without
	// publish_via_partition_root those are the names of the leaves (SetTables).
	Tables []Table
	// ExtraColumns are carried in Event.Extra, in this order.
	ExtraColumns []string
	// System is the cluster's system identifier; event ids of messages are made of it.
	System   string
	Messages MessageOptions
}

// Table names a table; the parts are compared byte for byte, never parsed.
type Table struct{ Schema, Name string }

// MessageOptions say which logical messages are events.
type MessageOptions struct {
	// Prefixes are compared byte for byte. Empty means no messages.
	Prefixes []string
	// AllowNonTransactional takes messages that survive a rollback, too.
	AllowNonTransactional bool
}

// Tx is the transaction at hand.
type Tx struct {
	// Commit is the position of the commit record: Begin.FinalLSN. A non-transactional
	// message has none and takes its own LSN instead.
	Commit event.Position
	// CommitMicros is the commit time, microseconds since 1970 UTC.
	CommitMicros int64
	// Xid is Begin.XID; zero for a non-transactional message.
	Xid uint32
	// Ordinal counts the transaction's events from 0. It must come out the same when
	// the transaction is delivered again: count every outcome that is not ignored.
	Ordinal uint32
}

// Mapper makes events of rows and logical messages. It is for one goroutine.
type Mapper struct {
	schema   event.Schema
	tables   map[Table]struct{}
	extra    []string
	system   string
	messages MessageOptions
	plans    map[uint32]*plan
	last     *plan
	objects  objectReader
}

// NewMapper checks the options and makes a mapper. The error is a Halt.
func NewMapper(o MapperOptions) (*Mapper, error) {
	if o.Schema.Columns[event.Payload] == "" {
		return nil, usage("the schema has no column for the payload", "start from a preset (event.NewSchema)")
	}
	for i, p := range o.Messages.Prefixes {
		if p == "" || strings.IndexByte(p, 0) >= 0 {
			return nil, usage(fmt.Sprintf("message prefix %d of %d, %q, is empty or contains a NUL", i+1, len(o.Messages.Prefixes), p),
				"name the prefix that the application passes to pg_logical_emit_message, for instance outbox")
		}
	}
	m := &Mapper{
		schema: o.Schema, extra: slices.Clone(o.ExtraColumns), system: o.System, messages: o.Messages,
	}
	// The longest first, so that a prefix that begins with another one is not taken
	// for a route of the shorter.
	m.messages.Prefixes = slices.Clone(o.Messages.Prefixes)
	slices.SortStableFunc(m.messages.Prefixes, func(a, b string) int { return len(b) - len(a) })
	m.objects.learn(&m.schema, m.extra)
	m.SetTables(o.Tables)
	return m, nil
}

func usage(what, remedy string) error {
	return &event.Error{Class: event.Halt, Fault: event.FaultUsage, What: what, Remedy: remedy, Anchor: AnchorMapping}
}

// SetTables replaces the set of outbox tables, for instance when a partition was
// added. It must not overlap a call of Row.
func (m *Mapper) SetTables(tables []Table) {
	m.tables = make(map[Table]struct{}, len(tables))
	for _, t := range tables {
		m.tables[t] = struct{}{}
	}
	m.plans = make(map[uint32]*plan)
	m.last = nil
}

// start makes ev an empty event of tx, keeping the memory of its slices.
func (m *Mapper) start(ev *event.Event, tx Tx, relation string) {
	extra, headers := ev.Extra[:0], ev.Headers[:0]
	if n := len(m.extra); n > 0 {
		extra = slices.Grow(extra, n)[:n]
		clear(extra)
	}
	*ev = event.Event{
		Extra: extra, Headers: headers, Relation: relation,
		Commit: tx.Commit, Ordinal: tx.Ordinal, CommitMicros: tx.CommitMicros, Xid: tx.Xid,
	}
}
