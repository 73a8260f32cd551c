package decoder

import (
	"encoding/binary"

	"github.com/walrelay/walrelay/event"
)

// wire writes messages by hand, one append per field of the manual's tables.
// It shares no code with the decoder.
type wire []byte

func msg(kind Kind) wire              { return wire{byte(kind)} }
func (w wire) i8(v uint8) wire        { return append(w, v) }
func (w wire) i16(v int) wire         { return binary.BigEndian.AppendUint16(w, uint16(v)) }
func (w wire) i32(v uint32) wire      { return binary.BigEndian.AppendUint32(w, v) }
func (w wire) i64(v uint64) wire      { return binary.BigEndian.AppendUint64(w, v) }
func (w wire) lsn(v event.LSN) wire   { return w.i64(uint64(v)) }
func (w wire) str(s string) wire      { return append(append(w, s...), 0) }
func (w wire) raw(s string) wire      { return append(w, s...) }
func (w wire) counted(s string) wire  { return w.i32(uint32(len(s))).raw(s) }
func (w wire) unix(micros int64) wire { return w.i64(uint64(micros - 946_684_800_000_000)) }
func (w wire) text(s string) wire     { return w.i8('t').counted(s) }
func (w wire) binary(s string) wire   { return w.i8('b').counted(s) }
func (w wire) null() wire             { return w.i8('n') }
func (w wire) unchanged() wire        { return w.i8('u') }
func (w wire) xid(in bool, x uint32) wire {
	if in {
		return w.i32(x)
	}
	return w
}

// col is one column of a hand-made relation.
type col struct {
	name string
	oid  uint32
	key  bool
}

func relationBytes(inStream bool, xid, id uint32, schema, name string, cols ...col) wire {
	w := msg(KindRelation).xid(inStream, xid).i32(id).str(schema).str(name).i8('d').i16(len(cols))
	for _, c := range cols {
		var flags uint8
		if c.key {
			flags = 1
		}
		w = w.i8(flags).str(c.name).i32(c.oid).i32(0xffffffff)
	}
	return w
}

// sample is one valid message and the state of the session it is valid in.
type sample struct {
	name     string
	protocol int
	parallel bool
	inStream bool
	bytes    wire
}

const (
	sampleTime = 1_700_000_000_123_456
	sampleLSN  = event.LSN(0x16_B374D848)
	sampleID   = 16_401
	sampleXID  = 771
)

func sampleColumns() []col {
	return []col{{"id", oidUUID, true}, {"payload", oidJSONB, false}, {"note", oidText, false}}
}

// samples holds every kind, in every form that it has.
func samples() []sample {
	out := []sample{
		{name: "begin", bytes: msg(KindBegin).lsn(sampleLSN).unix(sampleTime).i32(sampleXID)},
		{name: "commit", bytes: msg(KindCommit).i8(0).lsn(sampleLSN).lsn(sampleLSN + 48).unix(sampleTime)},
		{name: "origin", bytes: msg(KindOrigin).lsn(sampleLSN).str("other-cluster")},
		{name: "origin in stream", protocol: 2, inStream: true, bytes: msg(KindOrigin).lsn(sampleLSN).str("")},
		{name: "stream start", protocol: 2, bytes: msg(KindStreamStart).i32(sampleXID).i8(1)},
		{name: "stream start again", protocol: 2, bytes: msg(KindStreamStart).i32(sampleXID).i8(0)},
		{name: "stream stop", protocol: 2, inStream: true, bytes: msg(KindStreamStop)},
		{name: "stream commit", protocol: 2, bytes: msg(KindStreamCommit).i32(sampleXID).i8(0).lsn(sampleLSN).lsn(sampleLSN + 48).unix(sampleTime)},
		{name: "stream abort on protocol 1", protocol: 1, bytes: msg(KindStreamAbort).i32(sampleXID).i32(sampleXID + 1)},
		{name: "stream abort", protocol: 2, bytes: msg(KindStreamAbort).i32(sampleXID).i32(sampleXID + 1)},
		{name: "stream abort parallel", protocol: 4, parallel: true, bytes: msg(KindStreamAbort).i32(sampleXID).i32(sampleXID + 1).lsn(sampleLSN).unix(sampleTime)},
		{name: "begin prepare", protocol: 3, bytes: msg(KindBeginPrepare).lsn(sampleLSN).lsn(sampleLSN + 48).unix(sampleTime).i32(sampleXID).str("gid-1")},
		{name: "prepare", protocol: 3, bytes: msg(KindPrepare).i8(0).lsn(sampleLSN).lsn(sampleLSN + 48).unix(sampleTime).i32(sampleXID).str("gid-1")},
		{name: "commit prepared", protocol: 3, bytes: msg(KindCommitPrepared).i8(0).lsn(sampleLSN).lsn(sampleLSN + 48).unix(sampleTime).i32(sampleXID).str("gid-1")},
		{name: "rollback prepared", protocol: 3, bytes: msg(KindRollbackPrepared).i8(0).lsn(sampleLSN).lsn(sampleLSN + 48).unix(sampleTime).unix(sampleTime + 5).i32(sampleXID).str("gid-1")},
		{name: "stream prepare", protocol: 3, bytes: msg(KindStreamPrepare).i8(0).lsn(sampleLSN).lsn(sampleLSN + 48).unix(sampleTime).i32(sampleXID).str("gid-1")},
	}
	for _, in := range []bool{false, true} {
		protocol, where := 1, ""
		if in {
			protocol, where = 2, " in stream"
		}
		change := func(k Kind) wire { return msg(k).xid(in, sampleXID).i32(sampleID) }
		add := func(name string, w wire) {
			out = append(out, sample{name: name + where, protocol: protocol, inStream: in, bytes: w})
		}
		add("relation", relationBytes(in, sampleXID, sampleID+1, "Sales-EU", "Outbox.Order", sampleColumns()...))
		add("relation without columns", relationBytes(in, sampleXID, sampleID+2, "", "pg_thing"))
		add("type", msg(KindType).xid(in, sampleXID).i32(99_001).str("public").str("mood"))
		add("insert text", change(KindInsert).i8('N').i16(3).text("6b1f").text(`{"a": 1}`).null())
		add("insert binary", change(KindInsert).i8('N').i16(3).binary("0123456789abcdef").binary("\x01{}").text(""))
		add("update", change(KindUpdate).i8('N').i16(3).text("6b1f").unchanged().text("x"))
		add("update key", change(KindUpdate).i8('K').i16(3).text("6b1e").null().null().i8('N').i16(3).text("6b1f").unchanged().null())
		add("update full", change(KindUpdate).i8('O').i16(3).text("6b1e").text("{}").null().i8('N').i16(3).text("6b1f").text("{}").binary("x"))
		add("delete key", change(KindDelete).i8('K').i16(3).text("6b1e").null().null())
		add("delete full", change(KindDelete).i8('O').i16(3).text("6b1e").text("{}").binary("\x00"))
		add("truncate", msg(KindTruncate).xid(in, sampleXID).i32(1).i8(3).i32(sampleID))
		add("truncate nothing", msg(KindTruncate).xid(in, sampleXID).i32(0).i8(0))
		add("message", msg(KindMessage).xid(in, sampleXID).i8(1).lsn(sampleLSN).str("outbox/orders").counted(`{"a":1}`))
		add("message bare", msg(KindMessage).xid(in, sampleXID).i8(0).lsn(sampleLSN).str("").counted(""))
		add("message with NULs", msg(KindMessage).xid(in, sampleXID).i8(1).lsn(sampleLSN).str("x").counted("a\x00b\xff"))
	}
	return out
}

// ready is a decoder in the state that the sample is valid in.
func (s sample) ready() *Decoder {
	d := New(Options{Protocol: s.protocol, Parallel: s.parallel})
	mustDecode(d, relationBytes(false, 0, sampleID, "public", "outbox", sampleColumns()...))
	if s.inStream {
		mustDecode(d, msg(KindStreamStart).i32(sampleXID).i8(1))
	}
	return d
}

func mustDecode(d *Decoder, w wire) Message {
	m, err := d.Decode(w, sampleLSN)
	if err != nil {
		panic(err)
	}
	return m
}
