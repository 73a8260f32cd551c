package decoder

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

func TestEveryMessageKindIsReadAsTheManualDrawsIt(t *testing.T) {
	t.Parallel()
	outbox := &Relation{
		ID: sampleID, Namespace: "public", Name: "outbox", ReplicaIdentity: 'd', Version: 1,
		Columns: []Column{
			{Name: "id", TypeOID: oidUUID, TypeModifier: -1, Key: true, Flags: 1},
			{Name: "payload", TypeOID: oidJSONB, TypeModifier: -1},
			{Name: "note", TypeOID: oidText, TypeModifier: -1},
		},
	}
	odd := &Relation{
		ID: sampleID + 1, Namespace: "Sales-EU", Name: "Outbox.Order", ReplicaIdentity: 'd', Version: 1,
		Columns: outbox.Columns,
	}
	bare := &Relation{ID: sampleID + 2, Name: "pg_thing", ReplicaIdentity: 'd', Version: 1, Columns: []Column{}}
	text := func(s string) Value { return Value{Text, []byte(s)} }
	bin := func(s string) Value { return Value{Binary, []byte(s)} }
	null, toast := Value{Form: Null}, Value{Form: Unchanged}
	gid := []byte("gid-1")

	want := map[string]Message{
		"begin":                      &Begin{FinalLSN: sampleLSN, CommitMicros: sampleTime, XID: sampleXID},
		"commit":                     &Commit{CommitLSN: sampleLSN, EndLSN: sampleLSN + 48, CommitMicros: sampleTime},
		"origin":                     &Origin{CommitLSN: sampleLSN, Name: []byte("other-cluster")},
		"origin in stream":           &Origin{CommitLSN: sampleLSN, Name: []byte{}},
		"stream start":               &StreamStart{XID: sampleXID, First: true},
		"stream start again":         &StreamStart{XID: sampleXID},
		"stream stop":                &StreamStop{},
		"stream commit":              &StreamCommit{XID: sampleXID, CommitLSN: sampleLSN, EndLSN: sampleLSN + 48, CommitMicros: sampleTime},
		"stream abort on protocol 1": &StreamAbort{XID: sampleXID, SubXID: sampleXID + 1},
		"stream abort":               &StreamAbort{XID: sampleXID, SubXID: sampleXID + 1},
		"stream abort parallel":      &StreamAbort{XID: sampleXID, SubXID: sampleXID + 1, AbortLSN: sampleLSN, AbortMicros: sampleTime},
		"begin prepare":              &BeginPrepare{PrepareLSN: sampleLSN, EndLSN: sampleLSN + 48, PrepareMicros: sampleTime, XID: sampleXID, GID: gid},
		"prepare":                    &Prepare{PrepareLSN: sampleLSN, EndLSN: sampleLSN + 48, PrepareMicros: sampleTime, XID: sampleXID, GID: gid},
		"commit prepared":            &CommitPrepared{CommitLSN: sampleLSN, EndLSN: sampleLSN + 48, CommitMicros: sampleTime, XID: sampleXID, GID: gid},
		"rollback prepared":          &RollbackPrepared{PrepareEndLSN: sampleLSN, EndLSN: sampleLSN + 48, PrepareMicros: sampleTime, RollbackMicros: sampleTime + 5, XID: sampleXID, GID: gid},
		"stream prepare":             &StreamPrepare{PrepareLSN: sampleLSN, EndLSN: sampleLSN + 48, PrepareMicros: sampleTime, XID: sampleXID, GID: gid},
	}
	for where, x := range map[string]uint32{"": 0, " in stream": sampleXID} {
		want["relation"+where] = &RelationMessage{XID: x, Relation: odd, Changed: true}
		want["relation without columns"+where] = &RelationMessage{XID: x, Relation: bare, Changed: true}
		want["type"+where] = &TypeMessage{XID: x, OID: 99_001, Namespace: []byte("public"), Name: []byte("mood")}
		want["insert text"+where] = &Insert{XID: x, Relation: outbox, New: Tuple{text("6b1f"), text(`{"a": 1}`), null}}
		want["insert binary"+where] = &Insert{XID: x, Relation: outbox, New: Tuple{bin("0123456789abcdef"), bin("\x01{}"), text("")}}
		want["update"+where] = &Update{XID: x, Relation: outbox, New: Tuple{text("6b1f"), toast, text("x")}}
		want["update key"+where] = &Update{XID: x, Relation: outbox, OldKind: OldKey, Old: Tuple{text("6b1e"), null, null}, New: Tuple{text("6b1f"), toast, null}}
		want["update full"+where] = &Update{XID: x, Relation: outbox, OldKind: OldFull, Old: Tuple{text("6b1e"), text("{}"), null}, New: Tuple{text("6b1f"), text("{}"), bin("x")}}
		want["delete key"+where] = &Delete{XID: x, Relation: outbox, OldKind: OldKey, Old: Tuple{text("6b1e"), null, null}}
		want["delete full"+where] = &Delete{XID: x, Relation: outbox, OldKind: OldFull, Old: Tuple{text("6b1e"), text("{}"), bin("\x00")}}
		want["truncate"+where] = &Truncate{XID: x, Options: TruncateCascade | TruncateRestart, Relations: []*Relation{outbox}}
		want["truncate nothing"+where] = &Truncate{XID: x, Relations: []*Relation{}}
		want["message"+where] = &LogicalMessage{XID: x, Transactional: true, LSN: sampleLSN, Prefix: []byte("outbox/orders"), Content: []byte(`{"a":1}`)}
		want["message bare"+where] = &LogicalMessage{XID: x, LSN: sampleLSN, Prefix: []byte{}, Content: []byte{}}
		want["message with NULs"+where] = &LogicalMessage{XID: x, Transactional: true, LSN: sampleLSN, Prefix: []byte("x"), Content: []byte("a\x00b\xff")}
	}

	seen := map[Kind]bool{}
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			got, err := s.ready().Decode(s.bytes, sampleLSN)
			if err != nil {
				t.Fatal(err)
			}
			if want[s.name] == nil {
				t.Fatal("the sample has no expectation")
			}
			if got.Kind() != Kind(s.bytes[0]) {
				t.Errorf("Kind() = %q, the wire says %q", got.Kind(), s.bytes[0])
			}
			if g, w := show(got), show(want[s.name]); g != w {
				t.Errorf("got  %s\nwant %s", g, w)
			}
			seen[got.Kind()] = true
		})
	}
	for k := range kinds {
		if kinds[k].name != "" && !seen[Kind(k)] {
			t.Errorf("no sample of %s", Kind(k))
		}
	}
}

// show prints a message with what its pointers point at; nil and empty differ.
func show(m Message) string {
	s := fmt.Sprintf("%T%#v", m, m)
	switch m := m.(type) {
	case *RelationMessage:
		return fmt.Sprintf("%d %t %#v", m.XID, m.Changed, *m.Relation)
	case *Insert:
		return fmt.Sprintf("%d %#v %#v", m.XID, *m.Relation, m.New)
	case *Update:
		return fmt.Sprintf("%d %#v %c %q %#v", m.XID, *m.Relation, m.OldKind, m.Old, m.New)
	case *Delete:
		return fmt.Sprintf("%d %#v %c %#v", m.XID, *m.Relation, m.OldKind, m.Old)
	case *Truncate:
		s = fmt.Sprintf("%d %d %d", m.XID, m.Options, len(m.Relations))
		for _, r := range m.Relations {
			s += fmt.Sprintf(" %#v", *r)
		}
	}
	return s
}

func TestNoPrefixOfAMessageIsAcceptedAndNoTail(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		for n := range len(s.bytes) {
			if m, err := s.ready().Decode(s.bytes[:n:n], sampleLSN); err == nil {
				t.Errorf("%s: the first %d of %d bytes were accepted as %#v", s.name, n, len(s.bytes), m)
			}
		}
		m, err := s.ready().Decode(append(s.bytes[:len(s.bytes):len(s.bytes)], 0), sampleLSN)
		if err == nil {
			t.Errorf("%s: a byte too many was accepted as %#v", s.name, m)
		}
	}
}

func TestUnknownKindIsAHaltThatNamesKindAndLSN(t *testing.T) {
	t.Parallel()
	for k := range 256 {
		if kinds[k].name != "" {
			continue
		}
		_, err := New(Options{Protocol: 4}).Decode([]byte{byte(k), 1, 2, 3}, sampleLSN)
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("kind 0x%02x: %v", k, err)
		}
		var fact *event.Error
		if event.ClassOf(err) != event.Halt || !errors.As(err, &fact) || fact.Remedy == "" || fact.Anchor != AnchorUnknownMessage {
			t.Errorf("kind 0x%02x: not a Halt with a remedy and an anchor: %v", k, err)
		}
		if e.Kind != Kind(k) || e.LSN != sampleLSN || e.Offset != 0 ||
			!strings.Contains(err.Error(), fmt.Sprintf("0x%02x", k)) || !strings.Contains(err.Error(), sampleLSN.String()) {
			t.Errorf("kind 0x%02x: %+v %v", k, e, err)
		}
	}
}

func TestErrorsNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	insert := func() wire { return msg(KindInsert).i32(sampleID).i8('N') }
	for _, c := range []struct {
		name     string
		protocol int
		inStream bool
		bytes    wire
		offset   int
		want     []string
	}{
		{"empty", 1, false, nil, 0, []string{"is empty", sampleLSN.String()}},
		{"unknown relation", 1, false, msg(KindInsert).i32(4711).i8('N').i16(0), 5, []string{"relation id 4711", "not announced"}},
		{"fewer columns", 1, false, insert().i16(2).null().null(), 6, []string{"public.outbox", "has 2 columns", "announced with 3"}},
		{"more columns", 1, false, insert().i16(4).null().null().null().null(), 6, []string{"public.outbox", "has 4 columns", "announced with 3"}},
		{"many columns", 1, false, insert().i16(65535), 6, []string{"has 65535 columns"}},
		{"tuple mark", 1, false, msg(KindInsert).i32(sampleID).i8('K').i16(3).null().null().null(), 5, []string{"tuple mark 0x4b", "public.outbox"}},
		{"delete with new tuple", 1, false, msg(KindDelete).i32(sampleID).i8('N').i16(3).null().null().null(), 5, []string{"tuple mark 0x4e"}},
		{"value form", 1, false, insert().i16(3).null().i8('z').null(), 9, []string{"unknown form 0x7a", "public.outbox"}},
		{"negative length", 1, false, insert().i16(3).i8('t').i32(0xffffffff).null().null(), 13, []string{"4294967295 bytes"}},
		{"commit flags", 1, false, msg(KindCommit).i8(2).i64(0).i64(0).i64(0), 1, []string{"flags 0x02"}},
		{"message flags", 1, false, msg(KindMessage).i8(3).i64(0).str("").i32(0), 1, []string{"flags 0x03"}},
		{"streaming unasked", 1, false, msg(KindStreamStart).i32(1).i8(1), 0, []string{"protocol 2", "speaks 1"}},
		{"two-phase unasked", 2, false, msg(KindPrepare).i8(0), 0, []string{"protocol 3", "speaks 2"}},
		{"begin in stream", 2, true, msg(KindBegin).i64(0).i64(0).i32(0), 0, []string{"between Stream Start and Stream Stop"}},
		{"stop outside", 2, false, msg(KindStreamStop), 0, []string{"without a Stream Start"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := sample{protocol: c.protocol, inStream: c.inStream}
			_, err := s.ready().Decode(c.bytes, sampleLSN)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a *decoder.Error", err)
			}
			if e.Offset != c.offset {
				t.Errorf("offset %d, want %d: %v", e.Offset, c.offset, err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if event.ClassOf(err) != event.Halt {
				t.Error("not a Halt")
			}
		})
	}
}

func TestRelationKeepsItsPointerUntilItsShapeChanges(t *testing.T) {
	t.Parallel()
	d := New(Options{Protocol: 2})
	announce := func(cols ...col) *RelationMessage {
		return mustDecode(d, relationBytes(false, 0, sampleID, "public", "outbox", cols...)).(*RelationMessage)
	}
	first := announce(sampleColumns()...).Relation
	if m := announce(sampleColumns()...); m.Relation != first || m.Changed {
		t.Fatal("announcing the same shape again made a new relation")
	}
	for name, change := range map[string]func([]col) []col{
		"renamed":     func(c []col) []col { c[1].name = "body"; return c },
		"retyped":     func(c []col) []col { c[1].oid = oidText; return c },
		"key changed": func(c []col) []col { c[1].key = true; return c },
		"added":       func(c []col) []col { return append(c, col{"x", oidText, false}) },
		"dropped":     func(c []col) []col { return c[:2] },
	} {
		before := announce(sampleColumns()...).Relation
		m := announce(change(sampleColumns())...)
		if m.Relation == before || !m.Changed || m.Relation.Version != before.Version+1 {
			t.Errorf("%s: the relation did not change: %+v", name, m.Relation)
		}
		if len(before.Columns) != 3 || before.Columns[1].Name != "payload" {
			t.Errorf("%s: the old shape was written to", name)
		}
		if rel := d.relations[sampleID]; rel != m.Relation || d.last != m.Relation {
			t.Errorf("%s: the old shape is still in use", name)
		}
	}
	d.Reset()
	if _, err := d.Decode(msg(KindInsert).i32(sampleID).i8('N').i16(3).null().null().null(), 0); err == nil {
		t.Error("a relation of the old connection was still known after Reset")
	}
}

func TestNothingOfTheMessageBeforeIsLeft(t *testing.T) {
	t.Parallel()
	all := samples()
	// Every ordered pair of samples that one session can see, on one decoder.
	for _, before := range all {
		for _, s := range all {
			if before.inStream != s.inStream || before.parallel != s.parallel || before.name == s.name ||
				before.bytes[0] != s.bytes[0] || Kind(s.bytes[0]) == KindStreamStart {
				continue
			}
			want := show(mustDecode(s.ready(), s.bytes))
			d := s.ready()
			mustDecode(d, before.bytes)
			if got := show(mustDecode(d, s.bytes)); got != want {
				t.Errorf("%s after %s:\ngot  %s\nwant %s", s.name, before.name, got, want)
			}
		}
	}
}

func TestResetClosesAnOpenStream(t *testing.T) {
	t.Parallel()
	d := sample{protocol: 2, inStream: true}.ready()
	d.Reset()
	mustDecode(d, msg(KindBegin).i64(1).i64(2).i32(3))
}

func TestStreamedChangesCarryTheirTransactionUntilStreamStop(t *testing.T) {
	t.Parallel()
	d := sample{protocol: 2, inStream: true}.ready()
	in := msg(KindInsert).i32(801).i32(sampleID).i8('N').i16(3).null().null().null()
	if m := mustDecode(d, in).(*Insert); m.XID != 801 {
		t.Errorf("xid %d in the stream, want 801", m.XID)
	}
	mustDecode(d, msg(KindStreamStop))
	out := msg(KindInsert).i32(sampleID).i8('N').i16(3).null().null().null()
	if m := mustDecode(d, out).(*Insert); m.XID != 0 {
		t.Errorf("xid %d after the stream, want none", m.XID)
	}
}
