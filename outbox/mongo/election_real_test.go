package mongo

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// A primary steps down, its successor is killed: each row is handed out once and published once.
// Nobody knows of the claims whose answer was lost; they are given back by their time.
func TestElectionsCostNoRowAndNoOutcome(t *testing.T) {
	t.Parallel()
	srv := mongoserver.Start(t, mongoserver.Options{Nodes: 3})
	h := newHouse(t, srv, event.Forze, nil)
	const rows = 900
	h.insert(1, rows, 50)
	taken, all := map[string]int{}, outbox.Shards{Of: 1, Own: []int{0}}
	var fence outbox.Fence
	for n := 0; n < rows; {
		c := again(t, func(ctx context.Context) (*outbox.Claim, error) {
			c, err := h.Claim(ctx, outbox.Request{Limit: 30, Shards: all})
			if err != nil {
				again(t, func(ctx context.Context) (int, error) {
					return h.Reclaim(ctx, outbox.Reclaim{Shards: all, Tenures: []outbox.Tenure{{From: string(fence), Until: "infinity"}}})
				})
			}
			return c, err
		})
		if len(c.Rows) == 0 {
			t.Fatalf("nothing is left after %d rows of %d", n, rows)
		}
		fence = c.Fence
		outcomes := make([]outbox.Outcome, len(c.Rows))
		for i := range c.Rows {
			taken[c.Rows[i].ID]++
			outcomes[i] = outbox.Outcome{ID: c.Rows[i].ID, Fence: c.Fence}
		}
		was := n
		n += len(c.Rows)
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			switch {
			case was < rows/3 && n >= rows/3:
				srv.StepDown(t)
			case was < 2*rows/3 && n >= 2*rows/3:
				srv.Kill(t, srv.Primary(t))
			}
		}()
		if lost := again(t, func(ctx context.Context) ([]int, error) { return h.Settle(ctx, outcomes) }); len(lost) > 0 {
			t.Fatalf("lost %v", lost)
		}
		if was < rows/3 { // later, claims and outcomes go on meanwhile
			<-changed
		}
		defer func() { <-changed }()
	}
	for row, n := range taken {
		if n != 1 {
			t.Errorf("row %s was taken %d times", row, n)
		}
	}
	n := again(t, func(ctx context.Context) (int64, error) {
		n, err := h.c.CountDocuments(ctx, bson.D{is("status", published)})
		return n, mongostream.Classify(err, "counting")
	})
	if n != rows || len(taken) != rows {
		t.Fatalf("%d rows were taken, %d are published", len(taken), n)
	}
}

// again calls f until it is not told to come again.
func again[T any](t *testing.T, f func(ctx context.Context) (T, error)) T {
	t.Helper()
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		v, err := f(ctx)
		cancel()
		if err == nil {
			return v
		}
		if event.ClassOf(err) != event.Retry || time.Since(began) > 90*time.Second {
			t.Fatal(err)
		}
	}
}
