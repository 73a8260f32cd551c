package decoder

import (
	"bytes"
	"math"
	"slices"
	"testing"
)

// FuzzDecode: whatever was accepted is, written again by hand, the same bytes.
// So nothing is skipped, invented or read twice.
func FuzzDecode(f *testing.F) {
	for _, s := range samples() {
		f.Add([]byte(s.bytes), uint8(s.protocol), s.parallel, s.inStream)
	}
	f.Fuzz(func(t *testing.T, data []byte, protocol uint8, parallel, inStream bool) {
		s := sample{protocol: int(protocol), parallel: parallel, inStream: inStream && protocol > 1}
		m, err := s.ready().Decode(data, sampleLSN)
		if err != nil {
			if m != nil {
				t.Fatalf("a message and an error: %#v, %v", m, err)
			}
			_ = err.Error()
			return
		}
		if again := rewrite(m, s); !saturated(m) && !bytes.Equal(again, data) {
			t.Fatalf("%#v\nread from  %q\nwritten as %q", m, data, again)
		}
	})
}

// saturated: a time that 64 bits do not hold after the shift of the epoch cannot
// be written back.
func saturated(m Message) bool {
	edge := func(micros ...int64) bool {
		return slices.Contains(micros, math.MaxInt64) || slices.Contains(micros, math.MinInt64)
	}
	switch m := m.(type) {
	case *Begin:
		return edge(m.CommitMicros)
	case *Commit:
		return edge(m.CommitMicros)
	case *StreamCommit:
		return edge(m.CommitMicros)
	case *StreamAbort:
		return edge(m.AbortMicros)
	case *BeginPrepare:
		return edge(m.PrepareMicros)
	case *Prepare:
		return edge(m.PrepareMicros)
	case *CommitPrepared:
		return edge(m.CommitMicros)
	case *RollbackPrepared:
		return edge(m.PrepareMicros, m.RollbackMicros)
	case *StreamPrepare:
		return edge(m.PrepareMicros)
	}
	return false
}

func rewrite(m Message, s sample) wire {
	w := msg(m.Kind())
	in := s.inStream
	unix := func(w wire, micros int64) wire { return w.i64(uint64(micros - epochShift)) }
	tuple := func(w wire, t Tuple) wire {
		w = w.i16(len(t))
		for _, v := range t {
			w = w.i8(byte(v.Form))
			if v.Form == Text || v.Form == Binary {
				w = w.counted(string(v.Data))
			}
		}
		return w
	}
	bit := map[bool]uint8{true: 1}
	switch m := m.(type) {
	case *Begin:
		return unix(w.lsn(m.FinalLSN), m.CommitMicros).i32(m.XID)
	case *Commit:
		return unix(w.i8(0).lsn(m.CommitLSN).lsn(m.EndLSN), m.CommitMicros)
	case *Origin:
		return w.lsn(m.CommitLSN).str(string(m.Name))
	case *RelationMessage:
		r := m.Relation
		w = w.xid(in, m.XID).i32(r.ID).str(r.Namespace).str(r.Name).i8(r.ReplicaIdentity).i16(len(r.Columns))
		for _, c := range r.Columns {
			w = w.i8(c.Flags).str(c.Name).i32(c.TypeOID).i32(uint32(c.TypeModifier))
		}
		return w
	case *TypeMessage:
		return w.xid(in, m.XID).i32(m.OID).str(string(m.Namespace)).str(string(m.Name))
	case *Insert:
		return tuple(w.xid(in, m.XID).i32(m.Relation.ID).i8('N'), m.New)
	case *Update:
		w = w.xid(in, m.XID).i32(m.Relation.ID)
		if m.OldKind != NoOld {
			w = tuple(w.i8(byte(m.OldKind)), m.Old)
		}
		return tuple(w.i8('N'), m.New)
	case *Delete:
		return tuple(w.xid(in, m.XID).i32(m.Relation.ID).i8(byte(m.OldKind)), m.Old)
	case *Truncate:
		w = w.xid(in, m.XID).i32(uint32(len(m.Relations))).i8(m.Options)
		for _, r := range m.Relations {
			w = w.i32(r.ID)
		}
		return w
	case *LogicalMessage:
		return w.xid(in, m.XID).i8(bit[m.Transactional]).lsn(m.LSN).str(string(m.Prefix)).counted(string(m.Content))
	case *StreamStart:
		return w.i32(m.XID).i8(bit[m.First])
	case *StreamStop:
		return w
	case *StreamCommit:
		return unix(w.i32(m.XID).i8(0).lsn(m.CommitLSN).lsn(m.EndLSN), m.CommitMicros)
	case *StreamAbort:
		w = w.i32(m.XID).i32(m.SubXID)
		if s.parallel {
			w = unix(w.lsn(m.AbortLSN), m.AbortMicros)
		}
		return w
	case *BeginPrepare:
		return unix(w.lsn(m.PrepareLSN).lsn(m.EndLSN), m.PrepareMicros).i32(m.XID).str(string(m.GID))
	case *Prepare:
		return unix(w.i8(0).lsn(m.PrepareLSN).lsn(m.EndLSN), m.PrepareMicros).i32(m.XID).str(string(m.GID))
	case *CommitPrepared:
		return unix(w.i8(0).lsn(m.CommitLSN).lsn(m.EndLSN), m.CommitMicros).i32(m.XID).str(string(m.GID))
	case *RollbackPrepared:
		w = unix(w.i8(0).lsn(m.PrepareEndLSN).lsn(m.EndLSN), m.PrepareMicros)
		return unix(w, m.RollbackMicros).i32(m.XID).str(string(m.GID))
	case *StreamPrepare:
		return unix(w.i8(0).lsn(m.PrepareLSN).lsn(m.EndLSN), m.PrepareMicros).i32(m.XID).str(string(m.GID))
	}
	return nil
}
