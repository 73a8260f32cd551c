package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// rows appends rows made of documents.
func (t *Table) rows(to []outbox.Row, from []found) ([]outbox.Row, error) {
	size := 0
	for i := range from {
		size += len(from[i].doc)
	}
	text := make([]byte, 0, size) // what documents become is shorter than they are, as a rule
	for i := range from {
		to = append(to, outbox.Row{})
		text = t.row(text, from[i].doc, &to[len(to)-1])
	}
	return to, nil
}

// row makes a row of a document. What cannot be read of it makes its event a refused one.
func (t *Table) row(text []byte, doc bson.Raw, row *outbox.Row) []byte {
	ev := &row.Event
	text, _ = t.reader.Append(text, doc, ev)
	row.ID = string(ev.Fields[event.RowID])
	row.Route = string(ev.Fields[event.Route])
	row.Key = string(ev.Fields[event.Key])
	if row.Key == "" {
		row.Key = string(ev.Fields[event.EventID])
	}
	// State, due time and time of publishing are about the row, not the event.
	ev.Fields[event.Status], ev.Fields[event.AvailableAt], ev.Fields[event.PublishedAt] = nil, nil, nil
	if name := t.l.madeAt(); name != "" {
		if at, ok := doc.Lookup(name).DateTimeOK(); ok {
			ev.CommitMicros = at * 1000
		}
	}
	if t.l.states() {
		row.Attempts = number(doc.Lookup(fieldAttempts))
	}
	return text
}

// number is an integer, whatever the writer's language made of it; zero where there is none.
func number(v bson.RawValue) int {
	n, _ := v.AsInt64OK()
	return int(n)
}
