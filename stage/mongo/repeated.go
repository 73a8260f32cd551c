package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/stage"
)

// name is what an event is known by.
type name struct{ route, id string }

func nameOf(s *stage.Staged) name { return name{s.Route, s.ID.String()} }

// leaveOut takes out of the batch what is in the outbox already, or stands in the
// batch twice, and answers it. It is asked for beforehand because an insert that a
// unique index refuses ends the transaction. Two transactions that write one event
// at the same time do not see each other here: the index lets the later one conflict,
// and its next attempt finds the event.
func (x *Outbox) leaveOut(ctx context.Context, b *batch) (ignored []stage.Staged, err error) {
	there, err := x.there(ctx, b.events)
	if err != nil {
		return nil, err
	}
	kept := 0
	for i, e := range b.left {
		n := nameOf(&e)
		if there[n] {
			ignored = append(ignored, e)
			continue
		}
		there[n] = true
		b.left[kept], b.ids[kept], b.docs[kept] = e, b.ids[i], b.docs[i]
		kept++
	}
	b.left, b.ids, b.docs = b.left[:kept], b.ids[:kept], b.docs[:kept]
	return ignored, nil
}

// there looks events up by the unique index, without touching a document.
func (x *Outbox) there(ctx context.Context, events []stage.Staged) (map[name]bool, error) {
	byRoute, routes := map[string][]string{}, []string{}
	for i := range events {
		n := nameOf(&events[i])
		if byRoute[n.route] == nil {
			routes = append(routes, n.route)
		}
		byRoute[n.route] = append(byRoute[n.route], n.id)
	}
	var either bson.A
	for _, route := range routes {
		either = append(either, bson.D{{Key: "outbox_route", Value: route}, {Key: "event_id", Value: bson.D{{Key: "$in", Value: byRoute[route]}}}})
	}
	there := make(map[name]bool, len(events))
	cursor, err := x.coll.Find(ctx, bson.D{{Key: "$or", Value: either}},
		options.Find().SetProjection(bson.D{{Key: "_id", Value: 0}, {Key: "outbox_route", Value: 1}, {Key: "event_id", Value: 1}}))
	if err != nil {
		return nil, err
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		route, _ := cursor.Current.Lookup("outbox_route").StringValueOK()
		id, _ := cursor.Current.Lookup("event_id").StringValueOK()
		there[name{route, id}] = true
	}
	return there, cursor.Err()
}
