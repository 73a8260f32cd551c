package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/mongostream/bsonjson"
	"github.com/walrelay/walrelay/mongostream/document"
)

// idValues are the _id values that the texts stand for. What is no id's text is left out: there
// can be no such row.
func idValues(texts []string) bson.A {
	values := make(bson.A, 0, len(texts))
	for _, text := range texts {
		if v, err := document.DecodeID([]byte(text)); err == nil {
			values = append(values, v)
		}
	}
	return values
}

// idText is the text of a document's _id.
func idText(doc bson.Raw) (string, error) {
	id := doc.Lookup(fieldID)
	text, err := document.EncodeID(nil, bsonjson.Type(id.Type), id.Value)
	return string(text), err
}

// in is the condition that a field has one of the values.
func in(name string, values bson.A) bson.E {
	return bson.E{Key: name, Value: bson.D{{Key: "$in", Value: values}}}
}
