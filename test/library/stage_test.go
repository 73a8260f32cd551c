package library

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/stage/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

// Outbox contract, 3.1: whatever form it is written in, a staged event arrives with
// the headers of forze in its order, and the payload as it was staged (a jsonb column
// prints it in its own way). Records of one key are in the order of staging and commit.
func TestStagedEventsArriveWithTheHeadersOfTheContract(t *testing.T) {
	t.Parallel()
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			h := newShop(t, v)
			r := h.Start(t)
			r.WaitReady(soon)
			const (
				tenant, correlation = "0198f3a0-0000-7000-8000-00000000000a", "0198f3a0-0000-7000-8000-00000000000c"
				cause, execution    = "0198f3a0-0000-7000-8000-00000000000d", "0198f3a0-0000-7000-8000-00000000000b"
				payload             = `{ "n":9007199254740993 , "html":"<a>", "s":"\u00e9" }`
			)
			// A handler of an event that stages in reaction to it.
			reaction := inbox.Identity{Execution: uuid.MustParse(execution), Correlation: uuid.MustParse(correlation), Causation: uuid.MustParse(cause)}
			ctx := stage.WithIdentity(t.Context(), stage.Identity{Tenant: uuid.MustParse(tenant)})
			ctx = stage.WithIdentity(ctx, stage.Identity(reaction))
			ctx = trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: trace.TraceID{0x0a, 15: 0x9c}, SpanID: trace.SpanID{0xb7, 7: 0x31}, TraceFlags: trace.FlagsSampled,
			}))
			var want []string
			for _, form := range []postgres.Form{postgres.Rows, postgres.RowsDeleted, postgres.Messages} {
				out, err := open(ctx, h.pool, postgres.Options{Form: form})
				if err != nil {
					t.Fatal(err)
				}
				full := stage.Event{
					Route: "orders", Type: "OrderPlaced", Key: "order-1", Payload: json.RawMessage(payload), OccurredAt: time.Date(2026, 6, 1, 12, 0, 0, 7000, time.UTC),
				}
				staged, err := commit(ctx, h.pool, out, full)
				if err != nil {
					t.Fatal(err)
				}
				value := payload
				if form != postgres.Messages {
					value = `{"n": 9007199254740993, "s": "é", "html": "<a>"}`
				}
				want = append(want, "order-1", value, "forze_event_id="+staged[0].ID.String(), "forze_occurred_at=2026-06-01T12:00:00.000007+00:00",
					"forze_correlation_id="+correlation, "forze_causation_id="+cause, "forze_execution_id="+execution, "forze_tenant_id="+tenant,
					"forze_hlc="+staged[0].Stamp.String(), "traceparent=00-0a00000000000000000000000000009c-b700000000000031-01", "forze_type=OrderPlaced")
				// Without identity and span, two in one transaction.
				bare := stage.Event{Route: "orders", Type: "OrderPaid", Payload: struct{}{}, OccurredAt: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)}
				staged, err = commit(t.Context(), h.pool, out, bare, bare)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range staged {
					want = append(want, s.ID.String(), "{}", "forze_event_id="+s.ID.String(), "forze_occurred_at=2026-06-01T12:00:00+00:00",
						"forze_hlc="+s.Stamp.String(), "forze_type=OrderPaid")
				}
			}
			// Content that is no JSON.
			out, err := open(ctx, h.pool, postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := pgx.BeginFunc(ctx, h.pool, func(tx pgx.Tx) error {
				return out.Emit(ctx, postgres.Pgx(tx), stage.Message{Route: "orders", Key: "a/b", Content: []byte("\x00\xff")}, stage.Message{Route: "orders", Key: "c"})
			}); err != nil {
				t.Fatal(err)
			}
			want = append(want, "a/b", "\x00\xff", "forze_event_id", "c", "", "forze_event_id")

			var got []string
			for _, rec := range h.k.ConsumeN(t, 11, soon, h.Topic) {
				all := headers(rec)
				if len(all) == 1 { // made of its place in the log
					all[0], _, _ = strings.Cut(all[0], "=")
				}
				got = append(append(got, string(rec.Key), string(rec.Value)), all...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("records\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			var left int
			if err := h.pool.QueryRow(ctx, `select count(*) from outbox`).Scan(&left); err != nil || left != 3 {
				t.Errorf("%d rows are left in the table, %v, want the 3 that stay", left, err)
			}
		})
	}
}
