package library

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/stage"
	stagemongo "github.com/walrelay/walrelay/stage/mongo"
	"github.com/walrelay/walrelay/stage/postgres"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// writerURL tells the test's program that it is an application, and where its
// database is.
const writerURL = "WALRELAY_LIBRARY_WRITER_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(writerURL); url != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(url))
		os.Exit(1)
	}
	rig.Main(m, 4)
}

// soon bounds what takes a second, on a machine that runs other things too.
const soon = 60 * time.Second

// shop is an application's database with a relay behind it.
type shop struct {
	*rig.House
	k    *kafkaserver.Server
	pool *pgxpool.Pool
}

func newShop(t *testing.T, v pgserver.Version) *shop {
	t.Helper()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 1, nil))
	h.Postgres = "messages: [outbox]"
	h.Init(t)
	pool, err := pgxpool.New(t.Context(), h.PG.URL(h.Database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &shop{h, k, pool}
}

func open(ctx context.Context, pool *pgxpool.Pool, o postgres.Options) (*postgres.Outbox, error) {
	return postgres.Open(ctx, postgres.Pgx(pool), o)
}

// commit stages and flushes events in one transaction.
func commit(ctx context.Context, pool *pgxpool.Pool, out *postgres.Outbox, events ...stage.Event) (staged []stage.Staged, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		b := out.Buffer()
		for _, e := range events {
			s, err := b.Stage(ctx, e)
			if err != nil {
				return err
			}
			staged = append(staged, s)
		}
		_, err := out.Flush(ctx, postgres.Pgx(tx), b)
		return err
	})
	return staged, err
}

// commitMongo stages and flushes events in one transaction.
func commitMongo(ctx context.Context, db *mongo.Database, out *stagemongo.Outbox, events ...stage.Event) (staged []stage.Staged, err error) {
	err = db.Client().UseSession(ctx, func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			b := out.Buffer()
			staged = nil
			for _, e := range events {
				s, err := b.Stage(ctx, e)
				if err != nil {
					return nil, err
				}
				staged = append(staged, s)
			}
			_, err := out.Flush(ctx, b)
			return nil, err
		})
		return err
	})
	return staged, err
}

// headers are a record's, in order.
func headers(r *kgo.Record) (all []string) {
	for _, h := range r.Headers {
		all = append(all, h.Key+"="+string(h.Value))
	}
	return all
}
