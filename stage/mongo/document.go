package mongo

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/stage"
)

// maxDocument is the most bytes that a server stores as one document: 16 MiB.
//
// Source: MongoDB manual, "MongoDB Limits and Thresholds", BSON Document Size.
const maxDocument = 16 << 20

// fields that a flush adds; in the check of a staged event they have the same size.
type fields struct {
	_id     bson.ObjectID
	id      uuid.UUID
	created time.Time
}

// document is how an event would be stored, but for what the flush adds.
func (x *Outbox) document(s *stage.Staged) (bson.Raw, error) { return x.o.document(s, fields{}) }

// document has the fields of the forze outbox in its order (outbox contract, 1.1 and
// mongo.md, 0). Ids are text, times are dates of whole milliseconds, and what is
// absent is null, save hlc and what other writers do not know.
func (o *Options) document(s *stage.Staged, f fields) (bson.Raw, error) {
	payload, err := o.payload(s)
	if err != nil {
		return nil, err
	}
	d := bson.D{
		{Key: "_id", Value: f._id},
		{Key: "id", Value: f.id.String()},
		{Key: "outbox_route", Value: s.Route},
		{Key: "event_id", Value: s.ID.String()},
		{Key: "event_type", Value: s.Type},
		{Key: "tenant_id", Value: textOrNull(s.Tenant)},
		{Key: "execution_id", Value: textOrNull(s.Execution)},
		{Key: "correlation_id", Value: textOrNull(s.Correlation)},
		{Key: "causation_id", Value: textOrNull(s.Causation)},
		{Key: "occurred_at", Value: date(s.OccurredAt)},
		{Key: "payload", Value: payload},
		{Key: "status", Value: "pending"},
		{Key: "created_at", Value: date(f.created)},
		{Key: "published_at", Value: nil},
		{Key: "processing_at", Value: nil},
		{Key: "last_error", Value: nil},
		{Key: "attempts", Value: int32(0)},
		{Key: "available_at", Value: nil},
		{Key: "ordering_key", Value: nil},
	}
	if s.Key != "" {
		d[len(d)-1].Value = s.Key
	}
	if !o.OmitHLC {
		d = append(d, bson.E{Key: "hlc", Value: int64(s.Stamp)})
	}
	if !o.OmitTraceparent && s.Traceparent != "" {
		d = append(d, bson.E{Key: "traceparent", Value: s.Traceparent})
	}
	if o.AggregateVersion && s.AggregateVersion != 0 {
		d = append(d, bson.E{Key: "aggregate_version", Value: s.AggregateVersion})
	}
	raw, err := bson.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("making its document: %w", err)
	}
	if len(raw) > maxDocument {
		return nil, fmt.Errorf("its document has %d bytes, and MongoDB stores %d", len(raw), maxDocument)
	}
	return raw, nil
}

// payload is a document or, if asked for, the text itself.
func (o *Options) payload(s *stage.Staged) (any, error) {
	if o.PayloadAsText {
		return string(s.Body), nil
	}
	return payloadDocument(s.Body)
}

func textOrNull(id uuid.UUID) any {
	if id == uuid.Nil {
		return nil
	}
	return id.String()
}

// date cuts off what is finer than a millisecond, also before 1970.
func date(at time.Time) bson.DateTime { return bson.DateTime(at.UnixMilli()) }
