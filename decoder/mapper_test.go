package decoder

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

const (
	testSystem = "7512345678901234567"
	commitAt   = sampleTime
)

func testTx() Tx {
	return Tx{Commit: event.AtLSN(sampleLSN), CommitMicros: commitAt, Ordinal: 3}
}

func schemaOf(t testing.TB, p event.Preset, rename map[event.Field]string) event.Schema {
	t.Helper()
	s, err := event.NewSchema(p, rename)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newTestMapper(t testing.TB, p event.Preset, change ...func(*MapperOptions)) *Mapper {
	t.Helper()
	o := MapperOptions{
		Schema: schemaOf(t, p, nil), Tables: []Table{{"public", "outbox"}}, System: testSystem,
		Messages: MessageOptions{Prefixes: []string{"outbox"}},
	}
	for _, c := range change {
		c(&o)
	}
	m, err := NewMapper(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// cell is one column of a hand-made row: its name, type and value on the wire.
type cell struct {
	name string
	oid  uint32
	v    Value
}

func txt(s string) Value { return Value{Text, []byte(s)} }
func bin(s string) Value { return Value{Binary, []byte(s)} }

var null = Value{Form: Null}

func insertOf(schema, table string, cells ...cell) *Insert {
	rel := &Relation{ID: 7, Namespace: schema, Name: table, Version: 1}
	ins := &Insert{Relation: rel}
	for _, c := range cells {
		rel.Columns = append(rel.Columns, Column{Name: c.name, TypeOID: c.oid, TypeModifier: -1})
		ins.New = append(ins.New, c.v)
	}
	return ins
}

// forzeRow is a complete pending row; with replaces or adds cells, and a cell
// without a name takes the column away.
func forzeRow(with ...cell) *Insert {
	cells := []cell{
		{"id", oidUUID, txt("0198c0de-0000-7000-8000-000000000001")},
		{"outbox_route", oidText, txt("orders")},
		{"event_id", oidUUID, txt("0198c0de-0000-7000-8000-000000000002")},
		{"event_type", oidText, txt("order.placed")},
		{"tenant_id", oidUUID, null},
		{"occurred_at", oidTimestamptz, txt("2023-11-14 22:13:20+00")},
		{"payload", oidJSONB, txt(`{"n": 9007199254740993}`)},
		{"status", oidText, txt("pending")},
		{"available_at", oidTimestamptz, null},
		{"published_at", oidTimestamptz, null},
		{"ordering_key", oidText, txt("k-1")},
	}
next:
	for _, w := range with {
		for i := range cells {
			if cells[i].name == w.name {
				cells[i] = w
				continue next
			}
		}
		cells = append(cells, w)
	}
	return insertOf("public", "outbox", cells...)
}

func without(ins *Insert, name string) *Insert {
	i := ins.Relation.Column(name)
	ins.Relation.Columns = append(ins.Relation.Columns[:i], ins.Relation.Columns[i+1:]...)
	ins.New = append(ins.New[:i], ins.New[i+1:]...)
	return ins
}

// fieldsOf prints the fields that are present.
func fieldsOf(ev *event.Event) map[string]string {
	got := map[string]string{}
	for f := range event.NumFields {
		if ev.Fields[f] != nil {
			got[f.String()] = string(ev.Fields[f])
		}
	}
	return got
}

func expectFields(t *testing.T, ev *event.Event, want map[string]string) {
	t.Helper()
	if got := fieldsOf(ev); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("fields\ngot  %q\nwant %q", got, want)
	}
}

func expectError(t *testing.T, err error, class event.Class, anchor event.Anchor, words ...string) {
	t.Helper()
	var e *event.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *event.Error", err)
	}
	if event.ClassOf(err) != class || e.Anchor != anchor {
		t.Errorf("class %s and anchor %q, want %s and %q: %v", event.ClassOf(err), e.Anchor, class, anchor, err)
	}
	if class == event.Halt && e.Remedy == "" {
		t.Errorf("a Halt without a remedy: %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func TestMapperRefusesOptionsThatCannotWork(t *testing.T) {
	t.Parallel()
	_, err := NewMapper(MapperOptions{})
	expectError(t, err, event.Halt, AnchorMapping, "payload")
	for _, p := range []string{"", "out\x00box"} {
		_, err := NewMapper(MapperOptions{Schema: schemaOf(t, event.Forze, nil), Messages: MessageOptions{Prefixes: []string{"outbox", p}}})
		expectError(t, err, event.Halt, AnchorMapping, "prefix 2 of 2")
	}
}

func TestOutcomesHaveNamesAndOnlyIgnoredOnesAreIgnored(t *testing.T) {
	t.Parallel()
	for o := range NumOutcomes {
		if o.String() == "" || o.Ignored() != (o > Deferred) {
			t.Errorf("outcome %d: %q %t", o, o, o.Ignored())
		}
	}
	if NumOutcomes.String() != "unknown outcome" {
		t.Error("an outcome that is none has a name")
	}
}
