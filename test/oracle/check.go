package oracle

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Check judges records against what was committed. The records may come in any
// order; inside a partition their offsets count.
func Check(committed []Commit, records []*kgo.Record) Verdict {
	v := Verdict{Committed: len(committed), Records: len(records)}
	expected := make(map[string]*Commit, len(committed))
	for i := range committed {
		expected[committed[i].EventID] = &committed[i]
	}
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, func(a, b *kgo.Record) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})

	type lane struct { // where order is promised
		topic     string
		partition int32
		key       string
	}
	type home struct{ topic, key string }
	first := map[string]*kgo.Record{} // by event id
	newest := map[lane]*Commit{}
	partitions := map[home]int32{}
	for _, r := range sorted {
		id := EventID(r)
		c := expected[id]
		if c == nil {
			v.note(&v.Phantoms, "phantom", "%s has event id %q, which was never committed", place(r), id)
			continue
		}
		if before := first[id]; before != nil {
			v.note(&v.Duplicates, "duplicate", "event %s is at %s and again at %s", id, place(before), place(r))
			if !same(before, r) {
				v.note(&v.Changed, "changed", "event %s at %s differs from its first record at %s", id, place(r), place(before))
			}
			continue
		}
		first[id] = r
		if c.Value != nil && !bytes.Equal(c.Value, r.Value) {
			v.note(&v.Changed, "changed", "event %s at %s has value %q, committed was %q", id, place(r), r.Value, c.Value)
		}
		if c.Key == "" {
			continue
		}
		if string(r.Key) != c.Key {
			v.note(&v.Misplaced, "misplaced", "event %s at %s has record key %q, its key is %q", id, place(r), r.Key, c.Key)
		}
		h := home{r.Topic, c.Key}
		if p, known := partitions[h]; !known {
			partitions[h] = r.Partition
		} else if p != r.Partition {
			v.note(&v.Misplaced, "misplaced", "event %s of key %q is at %s, earlier ones were in partition %d", id, c.Key, place(r), p)
		}
		l := lane{r.Topic, r.Partition, c.Key}
		if n := newest[l]; n != nil && c.Seq < n.Seq {
			v.note(&v.Inversions, "inversion", "event %s (%q number %d) is at %s, behind %s (number %d)", id, c.Key, c.Seq, place(r), n.EventID, n.Seq)
		} else {
			newest[l] = c
		}
	}
	for i := range committed {
		if c := &committed[i]; first[c.EventID] == nil {
			v.note(&v.Lost, "lost", "event %s (%q number %d, route %q) is in no record", c.EventID, c.Key, c.Seq, c.Route)
		}
	}
	return v
}

// Require fails the test unless nothing is wrong, and at most so many records are duplicates.
func Require(t testing.TB, committed []Commit, records []*kgo.Record, maxDuplicates int) Verdict {
	t.Helper()
	if len(committed) == 0 {
		t.Error("nothing was committed: the test tests nothing")
	}
	v := Check(committed, records)
	if !v.CleanButForDuplicates() || v.Duplicates > maxDuplicates {
		t.Errorf("want at most %d duplicates and nothing else, have %s", maxDuplicates, v)
	}
	return v
}
