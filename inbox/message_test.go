package inbox_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/walrelay/walrelay/inbox"
)

func receive(t *testing.T, opts inbox.Options, r inbox.Record) (context.Context, inbox.Message) {
	t.Helper()
	ctx, m, err := newInbox(t, opts).Receive(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, m
}

// Battery F6 of the forze contract.
func TestReactionGetsTheCorrelationAndTheEventAsItsCause(t *testing.T) {
	t.Parallel()
	r := kafka(1, "k", "forze_event_id", someID, "forze_correlation_id", otherID, "forze_causation_id", otherID, "forze_type", "OrderPlaced")
	_, m := receive(t, inbox.Options{}, r)
	if m.Identity.Correlation != otherUUID || m.Identity.Causation != someUUID || m.Type != "OrderPlaced" || m.ID != someID {
		t.Errorf("%+v", m)
	}
	if m.Identity.Execution == uuid.Nil || m.Identity.Execution.Version() != 7 {
		t.Errorf("execution %s is not new", m.Identity.Execution)
	}
	if _, second := receive(t, inbox.Options{}, r); second.Identity.Execution == m.Identity.Execution {
		t.Error("two handlings are one execution")
	}
	given := func(context.Context) uuid.UUID { return otherUUID }
	if _, m := receive(t, inbox.Options{Execution: given}, r); m.Identity.Execution != otherUUID {
		t.Errorf("execution %s, want that of the caller", m.Identity.Execution)
	}
}

func TestMalformedMetadataIsAbsent(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "none", someID[:35], someID + "0", "{" + someID[:34] + "}", "zzzzzzzz-0000-7000-8000-000000000001"} {
		r := kafka(1, "k", "forze_event_id", "n-"+bad, "forze_correlation_id", bad, "forze_tenant_id", bad)
		_, m := receive(t, inbox.Options{TenantFromHeaders: true}, r)
		if m.Identity.Correlation != uuid.Nil || m.Identity.Tenant != uuid.Nil || m.Identity.Causation != uuid.Nil {
			t.Errorf("%q: correlation %s, tenant %s, causation %s", bad, m.Identity.Correlation, m.Identity.Tenant, m.Identity.Causation)
		}
	}
}

// Battery F7 of the forze contract.
func TestTenantOfAHeaderIsTakenOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	r := kafka(1, "k", "forze_tenant_id", someID)
	if _, m := receive(t, inbox.Options{}, r); m.Identity.Tenant != uuid.Nil {
		t.Errorf("tenant %s without being asked for", m.Identity.Tenant)
	}
	if _, m := receive(t, inbox.Options{TenantFromHeaders: true}, r); m.Identity.Tenant != someUUID {
		t.Errorf("tenant %s, want %s", m.Identity.Tenant, someID)
	}
}

func TestTraceOfTheHeaderIsTheParent(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx, _ := receive(t, inbox.Options{}, kafka(1, "k", "traceparent", parent))
	span := trace.SpanContextFromContext(ctx)
	if !span.IsRemote() || !span.IsSampled() || span.TraceID().String() != parent[3:35] || span.SpanID().String() != parent[36:52] {
		t.Errorf("span %+v", span)
	}
	for _, bad := range []string{"", "00-0af7", parent[:54], "00-" + "00000000000000000000000000000000" + parent[35:]} {
		ctx, _ := receive(t, inbox.Options{}, kafka(1, "k", "traceparent", bad))
		if trace.SpanContextFromContext(ctx).IsValid() {
			t.Errorf("traceparent %q was believed", bad)
		}
	}
}
