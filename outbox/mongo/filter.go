package mongo

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

func is(name string, value any) bson.E { return bson.E{Key: name, Value: value} }

// op is a document of one operator.
func op(name string, value any) bson.D { return bson.D{{Key: name, Value: value}} }

// nothing: rows of no shard at all are asked for.
func nothing(s outbox.Shards) bool { return s.Of > 0 && len(s.Own) == 0 }

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

// keyColumns are the fields that the effective key is taken from: the first that is neither
// null nor empty.
func (l *layout) keyColumns() []string {
	var names []string
	for _, f := range []event.Field{event.Key, event.EventID} {
		if name := l.column(f); name != "" {
			names = append(names, name)
		}
	}
	if l.column(event.EventID) == l.column(event.RowID) {
		names = append(names, fieldID) // a document without an id of its own is known by this one
	}
	return names
}

// mostKeyBytes bounds the keys of one condition: a command has 16 MiB, and they are in it twice. Rows of
// a key that did not fit in are claimed, and come back untouched from a caller who knows better.
const mostKeyBytes = 6 << 20

// keyIn are the alternatives that together say that a row's effective key is one of keys.
func (l *layout) keyIn(keys []string) bson.A {
	var forms bson.A
	size := 0
	for _, k := range keys {
		before := len(forms)
		forms = appendForms(forms, k)
		if size += (len(k) + 16) * (len(forms) - before); size > mostKeyBytes {
			forms = forms[:before]
			break
		}
	}
	var ways bson.A
	var empty bson.D
	for _, name := range l.keyColumns() {
		ways = append(ways, append(empty[:len(empty):len(empty)], in(name, forms)))
		empty = append(empty, in(name, bson.A{nil, ""}))
	}
	return ways
}

// appendForms appends the values that are printed as this key: a string, and what else
// the text may have been made of.
func appendForms(forms bson.A, key string) bson.A {
	forms = append(forms, key)
	switch {
	case len(key) == 24:
		if id, err := bson.ObjectIDFromHex(key); err == nil && id.Hex() == key {
			forms = append(forms, id)
		}
	case len(key) == 36 && strings.Count(key, "-") == 4:
		if b, ok := parseUUID(key); ok {
			forms = append(forms, bson.Binary{Subtype: bson.TypeBinaryUUID, Data: b})
		}
	case key == "true" || key == "false":
		forms = append(forms, key == "true")
	case len(key) <= 24:
		if f, err := strconv.ParseFloat(key, 64); err == nil {
			forms = append(forms, f) // which is equal to the integer, too
		}
		if n, err := strconv.ParseInt(key, 10, 64); err == nil {
			forms = append(forms, n) // and this is exact
		}
	}
	return forms
}

// inShards is the condition that a row is in one of the shards; nil: all are. The hash is
// the server's, so that all relays agree, and is of the key as text where the server can
// make text of it. Of binary keys it cannot: then all writers must write a key in the same way.
func (l *layout) inShards(s outbox.Shards) bson.D {
	if s.Of <= 0 || len(s.Own) == s.Of {
		return nil
	}
	own := make(bson.A, len(s.Own))
	for i, n := range s.Own {
		own[i] = n
	}
	return op("$expr", op("$in", bson.A{l.shardOf(s.Of), own}))
}

func (l *layout) shardOf(of int) any {
	names := l.keyColumns()
	key := any("$" + names[len(names)-1])
	for i := len(names) - 2; i >= 0; i-- {
		empty := op("$in", bson.A{op("$ifNull", bson.A{"$" + names[i], ""}), bson.A{""}})
		key = op("$cond", bson.A{empty, key, "$" + names[i]})
	}
	text := op("$convert", bson.D{is("input", key), is("to", "string"), is("onError", key), is("onNull", "")})
	// The remainder has the sign of the hash.
	return op("$abs", op("$mod", bson.A{op("$toHashedIndexKey", text), of}))
}
