package mongofake

import "go.mongodb.org/mongo-driver/v2/bson"

// Command is a command as it came in.
type Command struct {
	Name     string
	Database string
	Body     bson.Raw
	// sequences are the documents that travelled beside the body.
	sequences map[string][]bson.Raw
}

// Lookup returns the value under the keys, of type 0 where there is none.
func (c Command) Lookup(keys ...string) bson.RawValue { return c.Body.Lookup(keys...) }

// Documents returns the documents of a field: "documents" of insert, "updates",
// "deletes", "pipeline".
func (c Command) Documents(field string) []bson.Raw {
	if docs, beside := c.sequences[field]; beside {
		return docs
	}
	array, ok := c.Body.Lookup(field).ArrayOK()
	if !ok {
		return nil
	}
	values, err := array.Values()
	if err != nil {
		return nil
	}
	var docs []bson.Raw
	for _, v := range values {
		if doc, ok := v.DocumentOK(); ok {
			docs = append(docs, doc)
		}
	}
	return docs
}
