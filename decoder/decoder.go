package decoder

import "github.com/walrelay/walrelay/event"

// Message is one of the message structs of this package, by pointer; switch on
// its type. It is valid until the decoder's next call of Decode.
type Message interface {
	// Kind is the first byte on the wire.
	Kind() Kind
}

// Options say what was agreed with the server when replication was started.
type Options struct {
	// Protocol is pgoutput's proto_version, 1 to 4; zero means 1.
	Protocol int
	// Parallel says that the session asked for streaming 'parallel' (protocol 4):
	// Stream Abort then carries an LSN and a time.
	Parallel bool
}

// Decoder reads the messages of one replication connection, in order. It keeps
// the relations that the connection announced, whether a streamed block is open,
// and nothing else. It is for one goroutine.
type Decoder struct {
	protocol uint8
	parallel bool
	// inStream: between Stream Start and Stream Stop, where changes carry an xid.
	inStream  bool
	relations map[uint32]*Relation
	// last spares the map for runs of rows of one table.
	last *Relation

	draft relationDraft

	begin            Begin
	commit           Commit
	origin           Origin
	relation         RelationMessage
	typ              TypeMessage
	insert           Insert
	update           Update
	delete           Delete
	truncate         Truncate
	message          LogicalMessage
	streamStart      StreamStart
	streamStop       StreamStop
	streamCommit     StreamCommit
	streamAbort      StreamAbort
	beginPrepare     BeginPrepare
	prepare          Prepare
	commitPrepared   CommitPrepared
	rollbackPrepared RollbackPrepared
	streamPrepare    StreamPrepare
}

// New makes a decoder for a new connection.
func New(o Options) *Decoder {
	return &Decoder{
		protocol:  uint8(min(max(o.Protocol, 1), 4)),
		parallel:  o.Parallel,
		relations: make(map[uint32]*Relation),
	}
}

// Reset forgets the relations and any open stream: a new connection announces
// everything anew.
func (d *Decoder) Reset() {
	clear(d.relations)
	d.last = nil
	d.inStream = false
}

// Decode reads one message; lsn is the WAL start of its XLogData frame and only
// serves the error text. The error is always a [*Error] and a Halt; after it the
// connection cannot be read further.
func (d *Decoder) Decode(data []byte, lsn event.LSN) (Message, error) {
	c := cursor{src: data}
	kind := Kind(c.u8())
	if !d.admit(kind, &c) {
		return nil, newError(kind, lsn, &c)
	}
	m := d.read(kind, &c)
	if !c.done() {
		return nil, newError(kind, lsn, &c)
	}
	return m, nil
}

// admit checks what can be known before the body is read.
func (d *Decoder) admit(kind Kind, c *cursor) bool {
	if c.fault != faultNone {
		return false
	}
	k := &kinds[kind]
	switch {
	case k.name == "":
		c.off = 0
		c.fail(faultKind, 0, int(kind))
		return false
	case k.protocol > d.protocol:
		c.off = 0
		c.fail(faultProtocol, int(k.protocol), int(d.protocol))
		return false
	case k.place == outsideOnly && d.inStream:
		c.off = 0
		c.fail(faultInside, 0, 0)
		return false
	case k.place == insideOnly && !d.inStream:
		c.off = 0
		c.fail(faultOutside, 0, 0)
		return false
	}
	return true
}

// read reads the body of a kind that was admitted.
func (d *Decoder) read(kind Kind, c *cursor) Message {
	switch kind {
	case KindInsert:
		return d.insert.read(c, d)
	case KindBegin:
		return d.begin.read(c)
	case KindCommit:
		return d.commit.read(c)
	case KindMessage:
		return d.message.read(c, d)
	case KindRelation:
		return d.relation.read(c, d)
	case KindType:
		return d.typ.read(c, d)
	case KindOrigin:
		return d.origin.read(c)
	case KindUpdate:
		return d.update.read(c, d)
	case KindDelete:
		return d.delete.read(c, d)
	case KindTruncate:
		return d.truncate.read(c, d)
	case KindStreamStart:
		return d.streamStart.read(c, d)
	case KindStreamStop:
		return d.streamStop.read(d)
	case KindStreamCommit:
		return d.streamCommit.read(c)
	case KindStreamAbort:
		return d.streamAbort.read(c, d)
	case KindBeginPrepare:
		return d.beginPrepare.read(c)
	case KindPrepare:
		return d.prepare.read(c)
	case KindCommitPrepared:
		return d.commitPrepared.read(c)
	case KindRollbackPrepared:
		return d.rollbackPrepared.read(c)
	default:
		return d.streamPrepare.read(c)
	}
}

// xid takes the transaction id that leads a change inside a streamed block, and
// gives zero outside of one.
func (d *Decoder) xid(c *cursor) uint32 {
	if !d.inStream {
		return 0
	}
	return c.u32()
}

// known finds the relation of a change.
func (d *Decoder) known(c *cursor) *Relation {
	id := c.u32()
	if d.last != nil && d.last.ID == id {
		return d.last
	}
	rel := d.relations[id]
	if rel == nil {
		c.fail(faultRelation, 0, int(id))
		return nil
	}
	d.last = rel
	return rel
}
