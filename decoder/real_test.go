package decoder

import (
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/event"
)

// frame is one message that a real server sent.
type frame struct {
	lsn  event.LSN
	data []byte
}

// realFrames reads a transcript; testdata/real/README.md says what happened in it.
func realFrames(t *testing.T, name string) []frame {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "real", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var frames []frame
	for lines := bufio.NewScanner(z); lines.Scan(); {
		at, text, _ := strings.Cut(lines.Text(), " ")
		lsn, err := event.ParseLSN(at)
		if err != nil {
			t.Fatal(err)
		}
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frame{lsn, data})
	}
	return frames
}

var realOptions = map[string]Options{
	"pg15-v1": {Protocol: 1}, "pg15-v1binary": {Protocol: 1}, "pg15-v2": {Protocol: 2}, "pg15-v3": {Protocol: 3},
	"pg18-v1": {Protocol: 1}, "pg18-v1binary": {Protocol: 1}, "pg18-v2": {Protocol: 2}, "pg18-v3": {Protocol: 3},
	"pg18-v4": {Protocol: 4, Parallel: true},
}

func TestEverythingThatRealServersSendIsRead(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(realOptions)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New(realOptions[name])
			inserts := map[uint32]int{} // by xid; 0 outside of streamed blocks
			twoPhase, compared, kept := 0, 0, 0
			for _, f := range realFrames(t, name) {
				inStream := d.inStream
				m, err := d.Decode(f.data, f.lsn)
				if err != nil {
					t.Fatal(err)
				}
				if theirs, err := pglogrepl.ParseV2(f.data, inStream); err == nil {
					if !agree(t, m, theirs) {
						t.Fatalf("%s\n%#v", show(m), theirs)
					}
					compared++
				}
				switch m := m.(type) {
				case *Insert:
					if m.Relation.Name == "other" {
						inserts[m.XID]++
					}
				case *StreamAbort:
					if m.SubXID == m.XID {
						t.Error("an aborted subtransaction passes for its transaction")
					}
					if (m.AbortLSN != 0) != realOptions[name].Parallel {
						t.Errorf("abort LSN %s", m.AbortLSN)
					}
					delete(inserts, m.SubXID)
				case *BeginPrepare, *Prepare, *CommitPrepared, *RollbackPrepared, *StreamPrepare:
					twoPhase++
				}
			}
			for _, n := range inserts {
				kept += n
			}
			// One row by itself, 401 that outlive the savepoint, 400 that were prepared.
			if kept != 1+401+400 {
				t.Errorf("%d rows are left, want 802", kept)
			}
			if want := map[bool]int{true: 8}[realOptions[name].Protocol >= 3]; twoPhase != want {
				t.Errorf("%d two-phase messages, want %d", twoPhase, want)
			}
			if compared < 800 {
				t.Errorf("only %d messages were compared with pglogrepl", compared)
			}
		})
	}
}

func TestNoPrefixOfARealMessageIsAccepted(t *testing.T) {
	t.Parallel()
	for name, o := range realOptions {
		d := New(o)
		seen := map[string]bool{}
		for _, f := range realFrames(t, name) {
			// One of each kind and length is enough.
			if k := fmt.Sprint(f.data[0], len(f.data), d.inStream); !seen[k] {
				seen[k] = true
				before := d.inStream
				for n := range len(f.data) {
					if m, err := d.Decode(f.data[:n:n], f.lsn); err == nil {
						t.Fatalf("%s: %d of %d bytes were accepted as %s", name, n, len(f.data), show(m))
					}
					d.inStream = before
				}
			}
			mustDecode(d, f.data)
		}
	}
}

// The same rows in text and in binary form must become the same events.
func TestBinaryRowsOfRealServersBecomeTheSameEventsAsText(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"pg15", "pg18"} {
		text, binary := realRows(t, version+"-v1"), realRows(t, version+"-v1binary")
		if len(text) != 4 || fmt.Sprint(text) != fmt.Sprint(binary) {
			t.Errorf("%s\ntext   %s\nbinary %s", version, text, binary)
		}
		want := "map[event_id:0198c0de-0000-7000-8000-000000000001 hlc:5 id:0198c0de-0000-7000-8000-000000000001 " +
			"occurred_at:2024-02-29 12:00:00+00 payload:{\"n\": 9007199254740993}] \x00\xff"
		if text[0] != want {
			t.Errorf("%s: got %q, want %q", version, text[0], want)
		}
	}
}

func realRows(t *testing.T, name string) []string {
	t.Helper()
	m, err := NewMapper(MapperOptions{
		Schema: event.Schema{Columns: [event.NumFields]string{
			event.RowID: "id", event.EventID: "id", event.Payload: "payload", event.OccurredAt: "at", event.HLC: "hlc",
		}},
		Tables: []Table{{"public", "outbox"}}, ExtraColumns: []string{"raw"},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := New(realOptions[name])
	var rows []string
	for _, f := range realFrames(t, name) {
		ins, ok := mustDecode(d, f.data).(*Insert)
		if !ok {
			continue
		}
		var ev event.Event
		o, _, err := m.Row(ins, testTx(), &ev, nil)
		if err != nil {
			t.Fatal(err)
		}
		if o == Publish {
			rows = append(rows, fmt.Sprintf("%v %s", fieldsOf(&ev), ev.Extra[0]))
		}
	}
	return rows
}

func TestDomainInBinaryFormHaltsAndInTextFormIsRead(t *testing.T) {
	t.Parallel()
	o := MapperOptions{
		Schema: event.Schema{Columns: [event.NumFields]string{event.Payload: "payload", event.Type: "event_type", event.Status: "status"}},
		Tables: []Table{{"public", "outbox"}},
	}
	for _, name := range []string{"pg18-v1", "pg18-v1binary"} {
		m, err := NewMapper(o)
		if err != nil {
			t.Fatal(err)
		}
		d := New(realOptions[name])
		for _, f := range realFrames(t, name) {
			ins, ok := mustDecode(d, f.data).(*Insert)
			if !ok || ins.Relation.Name != "outbox" {
				continue
			}
			var ev event.Event
			outcome, _, err := m.Row(ins, testTx(), &ev, nil)
			if name == "pg18-v1" {
				if outcome != Publish || string(ev.Fields[event.Type]) != "a" || string(ev.Fields[event.Status]) != "pending" {
					t.Errorf("%s: %s %v %q", name, outcome, err, fieldsOf(&ev))
				}
				continue
			}
			expectError(t, err, event.Halt, AnchorBinaryType, "public.outbox")
		}
	}
}
