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
	schema  event.Schema
	columns []column
	// byLength has the columns by the length of their names, the longest ones together: few
	// have one length, so that comparing is cheaper than a hash.
	byLength [longName + 1][]column
	extras   []string
	format   bsonjson.Format
	payload  *bsonjson.Encoder
	text     *bsonjson.Encoder
	relation string
	most     int64
	// legacyUnknown: a UUID of binary subtype 3 is no text.
	legacyUnknown bool
	// idIsEventID: the event id has the field of the row id, and a document without it is known by _id.
	idIsEventID bool
}

// column is what one field of a document is for.
type column struct {
	name   string
	index  int
	fields uint32 // a bit for each event.Field
	extra  int    // index into Event.Extra plus one; zero: none
	isID   bool
}

const fieldID = "_id"

// longName is a length from which on names share a place.
const longName = 40

// maxColumns is how many different columns are told apart when a document has one twice.
const maxColumns = 256

// New makes a reader.
func New(o Options) *Reader {
	r := &Reader{
		schema: o.Schema, extras: o.Extra, format: o.Format.Format,
		payload: bsonjson.New(o.Format), text: bsonjson.New(o.Format), relation: o.Relation, most: o.MaxPayload,
		legacyUnknown: o.Format.LegacyUUID == bsonjson.LegacyRaw,
	}
	r.column(fieldID).isID = true
	for f, name := range o.Schema.Columns {
		if name != "" && event.Field(f) != event.RowID {
			r.column(name).fields |= 1 << f
		}
	}
	for i, name := range o.Extra {
		r.column(name).extra = i + 1
	}
	for i := range r.columns {
		n := min(len(r.columns[i].name), longName)
		r.byLength[n] = append(r.byLength[n], r.columns[i])
	}
	id := o.Schema.Columns[event.RowID]
	r.idIsEventID = id != "" && id == o.Schema.Columns[event.EventID]
	return r
}

// column finds or makes the one of that name.
func (r *Reader) column(name string) *column {
	for i := range r.columns {
		if r.columns[i].name == name {
			return &r.columns[i]
		}
	}
	r.columns = append(r.columns, column{name: name, index: len(r.columns)})
	return &r.columns[len(r.columns)-1]
}

// find gives the column of that name; nil: the field is not ours.
func (r *Reader) find(name []byte) *column {
	same := r.byLength[min(len(name), longName)]
	for i := range same {
		if same[i].name == string(name) {
			return &same[i]
		}
	}
	return nil
}
