package document

import (
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

// Options say how documents are read.
type Options struct {
	Schema event.Schema
	// Extra are the fields carried in Event.Extra, in this order.
	Extra []string
	// Format is how a payload is written that is a document or array.
	Format bsonjson.Options
	// Relation names the collection in messages to people.
	Relation string
	// MaxPayload is the largest payload that is taken, in bytes of BSON; zero: any.
	MaxPayload int64
}

// Reader makes events of documents. It is never changed, so any number of
// goroutines may use it.
type Reader struct {
	schema   event.Schema
	columns  map[string]column
	extras   []string
	format   bsonjson.Format
	payload  *bsonjson.Encoder
	text     *bsonjson.Encoder
	relation string
	most     int64
	// idIsEventID: the event id has the field of the row id, and a document without it is known by _id.
	idIsEventID bool
}

// column is what one field of a document is for.
type column struct {
	index  int
	fields uint32 // a bit for each event.Field
	extra  int    // index into Event.Extra plus one; zero: none
	isID   bool
}

const fieldID = "_id"

// maxColumns is how many different columns are told apart when a document has one twice.
const maxColumns = 256

// New makes a reader.
func New(o Options) *Reader {
	text := o.Format
	if text.LegacyUUID == bsonjson.LegacyRaw {
		text.LegacyUUID = bsonjson.LegacyPython
	}
	r := &Reader{
		schema: o.Schema, columns: make(map[string]column), extras: o.Extra, format: o.Format.Format,
		payload: bsonjson.New(o.Format), text: bsonjson.New(text), relation: o.Relation, most: o.MaxPayload,
	}
	find := func(name string) column {
		c, known := r.columns[name]
		if !known {
			c.index, c.isID = len(r.columns), name == fieldID
		}
		return c
	}
	r.columns[fieldID] = find(fieldID)
	for f, name := range o.Schema.Columns {
		if name == "" || event.Field(f) == event.RowID {
			continue
		}
		c := find(name)
		c.fields |= 1 << f
		r.columns[name] = c
	}
	for i, name := range o.Extra {
		c := find(name)
		c.extra = i + 1
		r.columns[name] = c
	}
	id := o.Schema.Columns[event.RowID]
	r.idIsEventID = id != "" && id == o.Schema.Columns[event.EventID]
	return r
}
