// Command payments is a service that reads events and reacts with events: it pays
// each order once, whatever is delivered twice or breaks in between. README.md
// says how to run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/inbox"
	inboxpg "github.com/walrelay/walrelay/inbox/postgres"
	stagepg "github.com/walrelay/walrelay/stage/postgres"
)

func main() {
	url := flag.String("database", os.Getenv("PAYMENTS_DATABASE_URL"), "connection string of its Postgres database")
	brokers := flag.String("brokers", os.Getenv("KAFKA_BROKERS"), "addresses of Kafka, separated by commas")
	topic := flag.String("topic", "shop.orders", "topic of the orders")
	node := flag.String("node", "payments-1", "name of this process among those of the service; it stays the same over restarts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, strings.Split(*brokers, ","), *topic, *node); err != nil && !errors.Is(err, context.Canceled) {
		// The record at which it stopped is delivered again after a restart.
		log.Fatalf("payments: %v", err)
	}
}

func run(ctx context.Context, url string, brokers []string, topic, node string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	// There is no unique order: that an order is paid once is the inbox's doing.
	if _, err := pool.Exec(ctx, `create table if not exists payments (order_id text not null, total numeric(12, 2) not null);`+inboxpg.DDL(nil)); err != nil {
		return err
	}
	out, err := stagepg.Open(ctx, stagepg.Pgx(pool), stagepg.Options{Checkpoint: stagepg.Checkpoint{NodeKey: node}})
	if err != nil {
		return err
	}
	core, err := inbox.New(inbox.Options{
		Route: "payments",
		// The clock that stamps what we stage has seen what we react to.
		Clock:     out.Clock(),
		OnRefused: func(m inbox.Message, err error) { log.Printf("payments: stamp of event %s: %v", m.ID, err) },
	})
	if err != nil {
		return err
	}
	in, err := inboxpg.New(core, inboxpg.Options{})
	if err != nil {
		return err
	}
	till := till{out}
	c, err := newConsumer(brokers, "payments", topic, func(ctx context.Context, r inbox.Record) error {
		outcome, err := in.Process(ctx, pool, r, till.pay)
		if err == nil {
			fmt.Println(outcome, string(r.Key))
		}
		return err
	}, kgo.InstanceID(node)) // with a name, a process that crashed has its partitions back as soon as it is up again
	if err != nil {
		return err
	}
	defer c.close()
	return c.run(ctx)
}
