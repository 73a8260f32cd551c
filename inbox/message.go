package inbox

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/propagation"
)

// Identity is what an event that reacts to a message should carry. An id that is
// uuid.Nil is absent. It has the fields of stage.Identity:
//
//	ctx = stage.WithIdentity(ctx, stage.Identity(m.Identity))
type Identity struct {
	// Tenant is absent unless Options.TenantFromHeaders.
	Tenant uuid.UUID
	// Execution names this handling: that of Options.Execution, or a new one. It
	// stays the same when the transaction is run again.
	Execution uuid.UUID
	// Correlation is that of the event. One that is not a UUID counts as absent.
	Correlation uuid.UUID
	// Causation is the id of the event itself: it is the cause of what the handler
	// stages. It is absent when the event has no id or one that is not a UUID.
	Causation uuid.UUID
}

// Message is what a handler is given.
type Message struct {
	Record
	// ID is what the record is marked by, see [Inbox.MessageID].
	ID string
	// Type of the event, empty when there is no header forze_type or type.
	Type string
	// Identity of what the handler does.
	Identity Identity

	// merged is set once the stamp was looked at: a transaction that is run again
	// does not do it twice.
	merged *bool
}

// Receive reads a record's headers. The context that it returns has the trace of
// the header traceparent as parent of spans that the handler starts; a malformed
// one is ignored. The error is that of MessageID.
func (in *Inbox) Receive(ctx context.Context, r Record) (context.Context, Message, error) {
	id, err := in.MessageID(&r)
	if err != nil {
		return ctx, Message{}, err
	}
	m := Message{Record: r, ID: id, merged: new(bool)}
	m.Type, _ = r.Header(HeaderType)
	if m.Type == "" {
		m.Type, _ = r.Header(headerPlainType)
	}
	m.Identity.Correlation = r.uuidHeader(HeaderCorrelationID)
	m.Identity.Causation = r.uuidHeader(in.opts.EventIDHeader)
	if in.opts.TenantFromHeaders {
		m.Identity.Tenant = r.uuidHeader(HeaderTenantID)
	}
	if in.opts.Execution != nil {
		m.Identity.Execution = in.opts.Execution(ctx)
	}
	if m.Identity.Execution == uuid.Nil {
		if m.Identity.Execution, err = uuid.NewV7(); err != nil {
			return ctx, Message{}, err
		}
	}
	return propagation.TraceContext{}.Extract(ctx, carrier{&r}), m, nil
}

// uuidHeader accepts the form of 36 characters, which is what relays write.
func (r *Record) uuidHeader(name string) uuid.UUID {
	text, _ := r.Header(name)
	if len(text) != 36 {
		return uuid.Nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil
	}
	return id
}

// carrier shows a record's headers to the propagator, which only reads.
type carrier struct{ r *Record }

func (c carrier) Get(name string) string {
	v, _ := c.r.Header(name)
	return v
}

func (carrier) Set(string, string) {}

func (c carrier) Keys() []string {
	names := make([]string, len(c.r.Headers))
	for i := range c.r.Headers {
		names[i] = c.r.Headers[i].Key
	}
	return names
}
