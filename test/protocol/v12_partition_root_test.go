package protocol

import (
	"slices"
	"testing"

	"github.com/jackc/pglogrepl"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// V12. With publish_via_partition_root relations of the root and of the leaf come
// before a row, and the row carries the root's id. Without it rows carry the
// leaf's: whoever goes by the table's name gets names he never heard of.

const partitioned = `create table parts (key text, body text, n int) partition by range (n);
	create table parts_a partition of parts for values from (0) to (10);
	create table parts_b partition of parts for values from (10) to (20)`

// names are the relations that came before the row of each key, and the one it carries.
func (w *wire) names(until string) (announced []string, carried map[string]string) {
	w.t.Helper()
	relations := map[uint32]string{}
	carried = map[string]string{}
	for {
		f := w.message('R', 'I')
		if f.kind() == 'R' {
			var m pglogrepl.RelationMessage
			decode(w.t, f, &m)
			relations[m.RelationID] = m.RelationName
			announced = append(announced, m.RelationName)
			continue
		}
		var m pglogrepl.InsertMessage
		decode(w.t, f, &m)
		key := string(m.Tuple.Columns[0].Data)
		carried[key] = relations[m.RelationID]
		if key == until {
			return announced, carried
		}
	}
}

func TestRowsOfAPartitionCarryTheRootOnlyIfAskedTo(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.exec(t, partitioned+`;
			create publication root for table parts with (publish_via_partition_root = true);
			create publication leaf for table parts with (publish_via_partition_root = false)`)
		root, leaf := p.with(p.newSlot(t, "r")), p.with(p.newSlot(t, "l"))
		root.publication, leaf.publication = "root", "leaf"
		r, l := root.begin(t, 0), leaf.begin(t, 0)
		p.exec(t, `insert into parts values ('one', 'x', 1)`)
		p.exec(t, `insert into parts values ('two', 'x', 11)`)

		announced, carried := r.names("two")
		if carried["one"] != "parts" || carried["two"] != "parts" {
			t.Errorf("rows carry %v, want the root", carried)
		}
		t.Logf("relations %v", announced)
		if !contains(announced, "parts_a") || !contains(announced, "parts_b") {
			t.Errorf("relations %v came, want those of the leaves too", announced)
		}
		announced, carried = l.names("two")
		if carried["one"] != "parts_a" || carried["two"] != "parts_b" || contains(announced, "parts") {
			t.Errorf("rows carry %v, relations %v; want the leaves", carried, announced)
		}
	})
}

func contains(names []string, name string) bool {
	return slices.Contains(names, name)
}

func TestStreamReadsPartitionsThroughTheRootOnly(t *testing.T) {
	everyVersion(t, func(t *testing.T, srv *pgserver.Server) {
		p := newPlace(t, srv)
		p.exec(t, partitioned+`; create publication parts for table parts with (publish_via_partition_root = true)`)
		p = p.with(p.newSlot(t, "parts"))
		p.publication = "parts"
		parts := func(o *slot.Options) { o.Tables = []slot.Table{{Schema: "public", Name: "parts"}} }
		s := p.open(t, parts)
		p.exec(t, `insert into parts values ('one', 'x', 1)`)
		p.exec(t, `insert into parts values ('two', 'x', 11)`)
		wantKeys(t, s.until("two").keys, "one", "two")
		s.close()

		p.exec(t, `alter publication parts set (publish_via_partition_root = false)`)
		s = p.open(t, parts)
		s.await(event.StateHalted)
	})
}
