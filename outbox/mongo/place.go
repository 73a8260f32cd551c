package mongo

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// found is a document with its place in the order of the table.
type found struct {
	doc   bson.Raw
	place []bson.RawValue
}

func (l *layout) placed(doc bson.Raw) found {
	names := l.order()
	f := found{doc: doc, place: make([]bson.RawValue, len(names))}
	for i, name := range names {
		f.place[i] = doc.Lookup(name)
	}
	return f
}

// sorted puts rows that several queries found into the order of the table, and cuts them off at limit. One
// that got another due time between two of the queries is there once.
func (l *layout) sorted(rows []found, limit int) []found {
	if !slices.IsSortedFunc(rows, l.compare) {
		slices.SortStableFunc(rows, l.compare)
	}
	rows = slices.CompactFunc(rows, func(a, b found) bool { return a.doc.Lookup(fieldID).Equal(b.doc.Lookup(fieldID)) })
	return rows[:min(limit, len(rows))]
}

func (l *layout) compare(a, b found) int {
	if l.hlcLast && l.states() {
		switch without, other := isNull(&a.place[0]), isNull(&b.place[0]); {
		case without && !other:
			return 1
		case other && !without:
			return -1
		}
	}
	for i := range a.place {
		if c := compareValues(&a.place[i], &b.place[i]); c != 0 {
			return c
		}
	}
	return 0
}
