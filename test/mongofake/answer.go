package mongofake

import "go.mongodb.org/mongo-driver/v2/bson"

// Answer is what a command gets.
type Answer struct {
	document  bson.D
	drop      bool
	byDefault bool
	held      <-chan struct{}
	then      *Answer
}

// OK is success, with the further fields of the reply.
func OK(fields ...bson.E) Answer {
	return Answer{document: append(bson.D{{Key: "ok", Value: 1.0}}, fields...)}
}

// Cursor is success with all documents of the namespace "database.collection" in
// one batch and no cursor left open, as for find and aggregate.
func Cursor(namespace string, documents ...any) Answer {
	return OK(bson.E{Key: "cursor", Value: bson.D{
		{Key: "id", Value: int64(0)},
		{Key: "ns", Value: namespace},
		{Key: "firstBatch", Value: append(bson.A{}, documents...)},
	}})
}

// Fail is an error of the server's with code and labels.
func Fail(code int32, message string, labels ...string) Answer {
	document := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: message}, {Key: "code", Value: code}}
	if len(labels) > 0 {
		document = append(document, bson.E{Key: "errorLabels", Value: labels})
	}
	return Answer{document: document}
}

// Drop closes the connection and answers nothing.
func Drop() Answer { return Answer{drop: true} }

// Default leaves the command to its handler; for a script that is to spare some
// commands, or after Hold.
func Default() Answer { return Answer{byDefault: true} }

// Hold keeps the client waiting until released is closed or it hangs up, and goes
// on with then.
func Hold(released <-chan struct{}, then Answer) Answer {
	return Answer{held: released, then: &then}
}
