// Command orders is a service that writes events: it places orders, each in one
// transaction with the event that tells of it. README.md says how to run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walrelay/walrelay/stage/postgres"
)

func main() {
	url := flag.String("database", os.Getenv("ORDERS_DATABASE_URL"), "connection string of its Postgres database")
	count := flag.Int("n", 10, "how many orders to place")
	every := flag.Duration("every", 200*time.Millisecond, "pause between two orders")
	node := flag.String("node", "orders-1", "name of this process among those of the service; it stays the same over restarts")
	ahead := flag.Duration("clock-ahead", 0, "pretend that this machine's clock is wrong by so much")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	wall := func() time.Time { return time.Now().Add(*ahead) }
	if err := run(ctx, *url, *node, *count, *every, wall); err != nil && ctx.Err() == nil {
		log.Fatalf("orders: %v", err)
	}
}

func run(ctx context.Context, url, node string, count int, every time.Duration, wall func() time.Time) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, `create table if not exists orders (id text primary key, total numeric(12, 2) not null)`); err != nil {
		return err
	}
	// Before the first event: the clock goes on where the process before this one
	// stopped. The table outbox is made by walrelay init.
	out, err := postgres.Open(ctx, postgres.Pgx(pool), postgres.Options{
		Checkpoint: postgres.Checkpoint{NodeKey: node}, Now: wall,
	})
	if err != nil {
		return err
	}
	pause := time.NewTicker(max(every, time.Microsecond))
	defer pause.Stop()
	shop := shop{pool, out}
	for range count {
		id, err := shop.place(ctx, "19.99")
		if err != nil {
			return err
		}
		fmt.Println("placed", id)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
