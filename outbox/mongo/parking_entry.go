package mongo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// parkedDocument is an entry. Names of others are written in the way of outbox.PlainText.
type parkedDocument struct {
	ID       int64            `bson:"_id"`
	Owner    string           `bson:"owner"`
	State    outbox.ParkState `bson:"state"`
	Relation string           `bson:"relation"`
	Row      string           `bson:"row"`
	EventID  string           `bson:"event_id"`
	Route    string           `bson:"route"`
	Key      string           `bson:"key"`
	Topic    string           `bson:"topic"`
	Commit   string           `bson:"commit"` // the resume token, "" for an event that a table reader had
	Ordinal  int64            `bson:"ordinal"`
	Reason   string           `bson:"reason"`
	Error    string           `bson:"error"`
	ParkedAt time.Time        `bson:"parked_at"`
	// Whole: the three below hold the event. Partial is a part of record, to be asked for.
	Whole     bool   `bson:"whole"`
	Partial   bool   `bson:"partial"`
	Record    string `bson:"record,omitempty"` // outbox.EncodeRecord
	Value     []byte `bson:"value"`            // null: a tombstone
	RecordKey []byte `bson:"record_key"`
}

// withoutEvent leaves out of an answer what is large.
var withoutEvent = bson.D{is("record", 0), is("value", 0), is("record_key", 0)}

// counterID is the document that gives ids, {next: 7, at: <the server's time>}. All who enter
// something change it first, and so take turns: two entries of one event cannot come to be.
const counterID = "counter"

func nextEntry(ctx context.Context, at place) (id int64, when time.Time, err error) {
	var counter struct {
		Next int64     `bson:"next"`
		At   time.Time `bson:"at"`
	}
	err = at.parked.FindOneAndUpdate(ctx, bson.D{is(fieldID, counterID)}, driver.Pipeline{
		set("next", call("$add", call("$ifNull", "$next", int64(0)), int64(1))), set("at", now),
	}, options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Decode(&counter)
	return counter.Next, counter.At, err
}

// enter enters an event: with its record where there is one, else its row is the event. One that
// is there already is parked again if it was on its way, and stays as it is otherwise.
func (k *Parking) enter(ctx context.Context, at place, p *outbox.Parked, state outbox.ParkState) error {
	id, when, err := nextEntry(ctx, at)
	if err != nil {
		return err
	}
	var known struct {
		ID    int64            `bson:"_id"`
		State outbox.ParkState `bson:"state"`
	}
	same := k.ours(is("relation", p.Relation), is("row", p.Row), is("event_id", outbox.PlainText(p.EventID)),
		is("commit", p.Commit.Token), is("ordinal", int64(p.Ordinal)))
	err = at.parked.FindOne(ctx, same, options.FindOne().SetProjection(bson.D{is("state", 1)})).Decode(&known)
	switch {
	case errors.Is(err, driver.ErrNoDocuments):
		return k.insert(ctx, at, p, state, id, when)
	case err != nil || state != outbox.StateParked:
		return err
	}
	// Changed also where it says so already: who has seen another state meanwhile must not write it.
	change := bson.D{is("$inc", bson.D{is("again", 1)})}
	if known.State != outbox.StateParked {
		change = append(change, is("$set", bson.D{is("state", state), is("reason", outbox.Printable(p.Reason)), is("error", outbox.Printable(p.Error))}))
	}
	_, err = at.parked.UpdateOne(ctx, bson.D{is(fieldID, known.ID)}, change)
	return err
}

func (k *Parking) insert(ctx context.Context, at place, p *outbox.Parked, state outbox.ParkState, id int64, when time.Time) error {
	doc := parkedDocument{
		ID: id, Owner: k.db.o.Owner, State: state, Relation: p.Relation, Row: p.Row, EventID: outbox.PlainText(p.EventID), Route: outbox.PlainText(p.Route),
		Key: outbox.PlainText(p.Key), Topic: outbox.PlainText(p.Topic), Commit: p.Commit.Token, Ordinal: int64(p.Ordinal),
		Reason: outbox.Printable(p.Reason), Error: outbox.Printable(p.Error), ParkedAt: when,
	}
	if p.Record != nil {
		budget := int64(k.db.o.ParkedBudget)
		n, err := at.parked.CountDocuments(ctx, k.ours(is("whole", true)), options.Count().SetLimit(budget))
		if err != nil {
			return err
		}
		if n >= budget {
			return k.full(p)
		}
		if doc.Record, err = outbox.EncodeRecord(p.Record); err != nil {
			return err
		}
		doc.Whole, doc.Partial, doc.Value, doc.RecordKey = true, p.Record.Partial, p.Record.Value, p.Record.Key
	}
	if size := len(doc.Record) + len(doc.Value) + len(doc.RecordKey); size > mostWhole {
		return &event.Error{
			Class: event.Halt, Fault: event.FaultPrecondition, Anchor: anchorParkingFull,
			What:   fmt.Sprintf("event %s has %d bytes, and cannot be kept whole: a document of MongoDB holds 16 MiB", p.EventID, size),
			Remedy: "raise the topic's and the broker's limit of message sizes so that it can be published, or set on_poison: dlq; then start the relay again",
		}
	}
	_, err := at.parked.InsertOne(ctx, doc)
	return err
}

// mostWhole is how large an event may be that is kept whole: the rest of the document is names.
const mostWhole = 16<<20 - 64<<10

// parked is the entry as the contract has it; its record only where it was read.
func (k *Parking) parked(doc *parkedDocument) (p outbox.Parked, err error) {
	p = outbox.Parked{
		ID: doc.ID, State: doc.State, Relation: doc.Relation, Row: doc.Row, EventID: outbox.FromPlainText(doc.EventID), Route: outbox.FromPlainText(doc.Route),
		Key: outbox.FromPlainText(doc.Key), Topic: outbox.FromPlainText(doc.Topic), Ordinal: uint32(doc.Ordinal), Reason: doc.Reason, Error: doc.Error,
		ParkedAt: doc.ParkedAt, Whole: doc.Whole, Partial: doc.Partial,
	}
	if doc.Commit != "" {
		p.Commit = event.AtToken(doc.Commit)
	}
	if doc.Record == "" {
		return p, nil
	}
	if p.Record, err = outbox.DecodeRecord([]byte(doc.Record)); err != nil {
		return p, err
	}
	p.Record.Value, p.Record.Key, p.Record.Origin = doc.Value, doc.RecordKey, p.Origin(k.db.o.Source)
	return p, nil
}
