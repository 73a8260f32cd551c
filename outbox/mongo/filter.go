package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

func is(name string, value any) bson.E { return bson.E{Key: name, Value: value} }

// op is a document of one operator.
func op(name string, value any) bson.D { return bson.D{{Key: name, Value: value}} }

// isPending are the conditions of a row that is pending, whether due or not.
func (l *layout) isPending() bson.D {
	switch l.schema.Preset {
	case event.Forze:
		return bson.D{is(l.column(event.Status), pending)}
	case event.Basic:
		return bson.D{is(l.column(event.PublishedAt), nil)}
	default:
		return bson.D{}
	}
}

// isDue says of any row whether its time has come, by the server's clock. To an expression null is less
// than any date.
func (l *layout) isDue() any {
	return op("$lte", bson.A{"$" + l.column(event.AvailableAt), "$$NOW"})
}

// wanted are the conditions of a claim beside state and due time.
func (l *layout) wanted(req *outbox.Request) bson.A {
	var all bson.A
	add := func(d bson.D) { all = append(all, d) }
	if d := l.inShards(req.Shards); d != nil {
		add(d)
	}
	if len(req.Held) > 0 {
		passes := bson.A{op("$nor", l.keyIn(req.Held))}
		if len(req.Heads) > 0 {
			passes = append(passes, bson.D{in(fieldID, idValues(req.Heads))})
		}
		if len(req.Loose) > 0 {
			passes = append(passes, bson.D{in(l.column(event.Route), texts(req.Loose))})
		}
		add(op("$or", passes))
	}
	if len(req.Except) > 0 {
		add(bson.D{is(fieldID, op("$nin", idValues(req.Except)))})
	}
	if req.Only != nil {
		add(bson.D{in(fieldID, idValues(req.Only))})
	}
	return all
}

// and joins conditions; an empty list of further ones changes nothing.
func and(d bson.D, more bson.A) bson.D {
	if len(more) > 0 {
		d = append(d[:len(d):len(d)], is("$and", more))
	}
	return d
}

func texts(s []string) bson.A {
	list := make(bson.A, len(s))
	for i := range s {
		list[i] = s[i]
	}
	return list
}
