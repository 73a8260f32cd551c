package stage_test

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
)

func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

func ExampleBuffer() {
	b := stage.NewBuffer(hlc.New(noon, 0), noon, 0) // an application asks its outbox for one
	s, err := b.Stage(context.Background(), stage.Event{
		Route: "orders", Type: "OrderPlaced", Key: "order-1", Payload: map[string]any{"total": "19.99"},
	})
	fmt.Println(s.Stamp, string(s.Body), err)

	_, err = b.Stage(context.Background(), stage.Event{Route: "orders", Type: "OrderPlaced", Payload: "no object"})
	fmt.Println(err)
	// Output:
	// 001780315200000.00000 {"total":"19.99"} <nil>
	// event of type "OrderPlaced" for route "orders": its payload is no JSON object, it begins with '"': readers of the outbox decode an object
}

// Each layer adds what it knows.
func ExampleWithIdentity() {
	ctx := stage.WithIdentity(context.Background(), stage.Identity{Tenant: uuid.MustParse("0198f3a0-0000-7000-8000-00000000000a")})
	ctx = stage.WithIdentity(ctx, stage.Identity{Causation: uuid.MustParse("0198f3a0-0000-7000-8000-00000000000d")})
	id := stage.IdentityOf(ctx)
	fmt.Println(id.Tenant, id.Causation)
	// Output: 0198f3a0-0000-7000-8000-00000000000a 0198f3a0-0000-7000-8000-00000000000d
}
