package protocol

import (
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// V11. Values come as the server prints them: infinite times and years before
// Christ as text, NULL as a kind of its own, the empty string as a text of no
// length. Generated columns are not sent, unless Postgres 18 is asked to.

const valuesTable = `create table vals (key text primary key, at timestamptz, note text, twice text generated always as (key || key) stored);
	create publication v for table vals`

const valuesRows = `insert into vals (key, at, note) values ('plus', 'infinity', null), ('minus', '-infinity', ''), ('bc', '4713-01-01 00:00:00+00 BC', 'x')`

func TestTimesNullsAndEmptyTextsComeAsPrinted(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.exec(t, valuesTable)
		slot := p.with(p.newSlot(t, "v"))
		slot.publication = "v"
		w := slot.begin(t, 0)
		p.exec(t, valuesRows)
		var rel pglogrepl.RelationMessage
		decode(t, w.message('R'), &rel)
		if rel.ColumnNum != 3 {
			t.Errorf("%d columns in the relation, want 3: without the generated one", rel.ColumnNum)
		}
		want := []struct {
			at, note string
			kind     byte
		}{
			{"infinity", "", 'n'},
			{"-infinity", "", 't'},
			{"4713-01-01 00:00:00+00 BC", "x", 't'},
		}
		for _, row := range want {
			var m pglogrepl.InsertMessage
			decode(t, w.message('I'), &m)
			at, note := m.Tuple.Columns[1], m.Tuple.Columns[2]
			if string(at.Data) != row.at || string(note.Data) != row.note || note.DataType != row.kind || len(m.Tuple.Columns) != 3 {
				t.Errorf("row %s, %c %q, %d columns; want %+v and 3", at.Data, note.DataType, note.Data, len(m.Tuple.Columns), row)
			}
		}
	})
}

func TestPostgres18SendsStoredGeneratedColumnsWhenAsked(t *testing.T) {
	t.Parallel()
	srv := pgserver.Shared(t, pgserver.V18)
	p := newPlace(t, srv)
	p.exec(t, valuesTable+" with (publish_generated_columns = stored)")
	q := p.with(p.newSlot(t, "v"))
	q.publication = "v"
	w := q.begin(t, 0)
	p.exec(t, valuesRows)
	var m pglogrepl.InsertMessage
	decode(t, w.message('I'), &m)
	if n := len(m.Tuple.Columns); n != 4 || string(m.Tuple.Columns[3].Data) != "plusplus" {
		t.Errorf("%d columns %v, want the fourth to be plusplus", n, m.Tuple.Columns)
	}
}

func TestStreamHandsTimesOnAsPrinted(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.exec(t, valuesTable)
		p = p.with(p.newSlot(t, "v"))
		p.publication = "v"
		s := p.open(t, func(o *slot.Options) {
			o.Tables = []slot.Table{{Schema: "public", Name: "vals"}}
			o.Schema.Columns[event.OccurredAt] = "at"
			o.Schema.Columns[event.Payload] = "note"
		})
		p.exec(t, valuesRows)
		want := []string{"infinity", "-infinity", "4713-01-01 00:00:00+00 BC"}
		for i := 0; i < len(want); {
			b, err := s.s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, ev := range b.Events {
				if got := string(ev.Fields[event.OccurredAt]); got != want[i] {
					t.Errorf("time %q, want %q", got, want[i])
				}
				if null := ev.Fields[event.Payload] == nil; null != (i == 0) {
					t.Errorf("event %d: the payload is null: %v", i, null)
				}
				i++
			}
			b.Memory.Release()
		}
	})
}
