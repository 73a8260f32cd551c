package mongo

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
)

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
