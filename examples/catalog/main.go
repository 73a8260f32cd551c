// Command catalog is a service that writes events with MongoDB: it changes prices, each
// in one transaction with the event that tells of it. README.md says how to run it.
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

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	stagemongo "github.com/walrelay/walrelay/stage/mongo"
)

func main() {
	url := flag.String("database", os.Getenv("CATALOG_DATABASE_URL"), "connection string of its MongoDB replica set")
	count := flag.Int("n", 10, "how many prices to change")
	products := flag.Int("products", 3, "of how many products")
	every := flag.Duration("every", 200*time.Millisecond, "pause between two changes")
	node := flag.String("node", "catalog-1", "name of this process among those of the service; it stays the same over restarts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := mongo.Connect(options.Client().ApplyURI(*url))
	if err == nil {
		err = run(ctx, client.Database("catalog"), *node, *count, *products, *every)
		_ = client.Disconnect(context.Background())
	}
	if err != nil && ctx.Err() == nil {
		log.Fatalf("catalog: %v", err)
	}
}

func run(ctx context.Context, db *mongo.Database, node string, count, products int, every time.Duration) error {
	o := stagemongo.Options{Checkpoint: stagemongo.Checkpoint{NodeKey: node}}
	// The collection outbox may be there from walrelay init; that of the marks is ours.
	if err := stagemongo.Init(ctx, db, o); err != nil {
		return err
	}
	// Before the first event: the clock goes on where the process before this one stopped.
	out, err := stagemongo.Open(ctx, db, o)
	if err != nil {
		return err
	}
	pause := time.NewTicker(max(every, time.Microsecond))
	defer pause.Stop()
	c := catalog{db, out}
	for n := range count {
		product, price := fmt.Sprintf("product-%d", n%products), fmt.Sprintf("%d.99", 10+n)
		version, err := c.reprice(ctx, product, price)
		if err != nil {
			return err
		}
		fmt.Println(product, "costs", price, "in version", version)
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
