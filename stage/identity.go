package stage

import (
	"context"

	"github.com/google/uuid"
)

// Identity says whose an event is and what it follows from. A zero id is absent.
type Identity struct {
	// Tenant is whose data it is.
	Tenant uuid.UUID
	// Execution is the run of the use case that staged the event.
	Execution uuid.UUID
	// Correlation is what all events share that follow from one request.
	Correlation uuid.UUID
	// Causation is the id of the event that this one reacts to.
	Causation uuid.UUID
}

type identityKey struct{}

// WithIdentity gives a context an identity for the events that are staged with
// it. Ids that are absent are taken over from the identity that ctx has already, so
// that each layer adds what it knows: the request its tenant and correlation, a
// consumer of events the causation.
func WithIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id.or(IdentityOf(ctx)))
}

// IdentityOf is the context's identity; the zero value when it has none.
func IdentityOf(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

// or fills what is absent.
func (id Identity) or(other Identity) Identity {
	pick := func(a, b uuid.UUID) uuid.UUID {
		if a == uuid.Nil {
			return b
		}
		return a
	}
	return Identity{
		Tenant: pick(id.Tenant, other.Tenant), Execution: pick(id.Execution, other.Execution),
		Correlation: pick(id.Correlation, other.Correlation), Causation: pick(id.Causation, other.Causation),
	}
}
