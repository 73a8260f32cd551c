package decoder

import (
	"bytes"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
)

// pglogrepl copies every value and panics on short input; on valid input it is
// an independent reader of the same format.
func TestDecoderAgreesWithPglogrepl(t *testing.T) {
	t.Parallel()
	agreed := 0
	for _, s := range samples() {
		theirs, err := pglogrepl.ParseV2(s.bytes, s.inStream)
		if err != nil {
			continue // counted below
		}
		ours, err := s.ready().Decode(s.bytes, sampleLSN)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		if !agree(t, ours, theirs) {
			t.Errorf("%s:\nours   %s\ntheirs %#v", s.name, show(ours), theirs)
		}
		agreed++
	}
	// It knows none of the five two-phase kinds, and no truncate of nothing (twice among the samples).
	if want := len(samples()) - 5 - 2; agreed != want {
		t.Errorf("compared %d messages, want %d", agreed, want)
	}
}

func agree(t *testing.T, ours Message, theirs pglogrepl.Message) bool {
	t.Helper()
	at := time.UnixMicro
	switch o := ours.(type) {
	case *Begin:
		m := theirs.(*pglogrepl.BeginMessage)
		return uint64(o.FinalLSN) == uint64(m.FinalLSN) && at(o.CommitMicros).Equal(m.CommitTime) && o.XID == m.Xid
	case *Commit:
		m := theirs.(*pglogrepl.CommitMessage)
		return uint64(o.CommitLSN) == uint64(m.CommitLSN) && uint64(o.EndLSN) == uint64(m.TransactionEndLSN) &&
			at(o.CommitMicros).Equal(m.CommitTime)
	case *Origin:
		m := theirs.(*pglogrepl.OriginMessage)
		return uint64(o.CommitLSN) == uint64(m.CommitLSN) && string(o.Name) == m.Name
	case *RelationMessage:
		m := theirs.(*pglogrepl.RelationMessageV2)
		r := o.Relation
		same := o.XID == m.Xid && r.ID == m.RelationID && r.Namespace == m.Namespace && r.Name == m.RelationName &&
			r.ReplicaIdentity == m.ReplicaIdentity && len(r.Columns) == len(m.Columns)
		for i := 0; same && i < len(r.Columns); i++ {
			a, b := r.Columns[i], m.Columns[i]
			same = a.Name == b.Name && a.TypeOID == b.DataType && a.TypeModifier == b.TypeModifier && a.Flags == b.Flags
		}
		return same
	case *TypeMessage:
		m := theirs.(*pglogrepl.TypeMessageV2)
		return o.XID == m.Xid && o.OID == m.DataType && string(o.Namespace) == m.Namespace && string(o.Name) == m.Name
	case *Insert:
		m := theirs.(*pglogrepl.InsertMessageV2)
		return o.XID == m.Xid && o.Relation.ID == m.RelationID && sameTuple(o.New, m.Tuple)
	case *Update:
		m := theirs.(*pglogrepl.UpdateMessageV2)
		return o.XID == m.Xid && o.Relation.ID == m.RelationID && byte(o.OldKind) == m.OldTupleType &&
			sameTuple(o.Old, m.OldTuple) && sameTuple(o.New, m.NewTuple)
	case *Delete:
		m := theirs.(*pglogrepl.DeleteMessageV2)
		return o.XID == m.Xid && o.Relation.ID == m.RelationID && byte(o.OldKind) == m.OldTupleType && sameTuple(o.Old, m.OldTuple)
	case *Truncate:
		m := theirs.(*pglogrepl.TruncateMessageV2)
		same := o.XID == m.Xid && o.Options == m.Option && len(o.Relations) == len(m.RelationIDs)
		for i := 0; same && i < len(o.Relations); i++ {
			same = o.Relations[i].ID == m.RelationIDs[i]
		}
		return same
	case *LogicalMessage:
		m := theirs.(*pglogrepl.LogicalDecodingMessageV2)
		return o.XID == m.Xid && o.Transactional == m.Transactional && uint64(o.LSN) == uint64(m.LSN) &&
			string(o.Prefix) == m.Prefix && bytes.Equal(o.Content, m.Content)
	case *StreamStart:
		m := theirs.(*pglogrepl.StreamStartMessageV2)
		return o.XID == m.Xid && o.First == (m.FirstSegment == 1)
	case *StreamStop:
		_, ok := theirs.(*pglogrepl.StreamStopMessageV2)
		return ok
	case *StreamCommit:
		m := theirs.(*pglogrepl.StreamCommitMessageV2)
		return o.XID == m.Xid && uint64(o.CommitLSN) == uint64(m.CommitLSN) &&
			uint64(o.EndLSN) == uint64(m.TransactionEndLSN) && at(o.CommitMicros).Equal(m.CommitTime)
	case *StreamAbort:
		m := theirs.(*pglogrepl.StreamAbortMessageV2)
		return o.XID == m.Xid && o.SubXID == m.SubXid
	}
	t.Errorf("no comparison for %T", ours)
	return false
}

func sameTuple(ours Tuple, theirs *pglogrepl.TupleData) bool {
	if theirs == nil {
		return len(ours) == 0
	}
	if len(ours) != len(theirs.Columns) {
		return false
	}
	for i, v := range ours {
		if byte(v.Form) != theirs.Columns[i].DataType || !bytes.Equal(v.Data, theirs.Columns[i].Data) {
			return false
		}
	}
	return true
}
