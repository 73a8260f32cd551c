package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/stage"
	stagepg "github.com/walrelay/walrelay/stage/postgres"
)

// A service that reacts to events with events: what it pays, what it says about
// it, and the mark that it has done so are one transaction. examples/payments has
// the whole of it, with a consumer.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@localhost/payments")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	out, err := stagepg.Open(ctx, stagepg.Pgx(pool), stagepg.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// One clock for both: what is staged sorts after what was consumed.
	core, err := inbox.New(inbox.Options{Route: "payments", Clock: out.Clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := postgres.New(core, postgres.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}

	handler := func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
		ctx = stage.WithIdentity(ctx, stage.Identity(m.Identity))
		if _, err := tx.Exec(ctx, `insert into payments (order_id) values ($1)`, string(m.Key)); err != nil {
			return err
		}
		b := out.Buffer()
		if _, err := b.Stage(ctx, stage.Event{Route: "payments", Type: "OrderPaid", Key: string(m.Key), Payload: map[string]string{"order": string(m.Key)}}); err != nil {
			return err
		}
		_, err := out.Flush(ctx, stagepg.Pgx(tx), b)
		return err
	}
	handle := func(r *kgo.Record) error {
		outcome, err := in.Process(ctx, pool, fromKafka(r), handler)
		if err != nil {
			return err // do not commit the offset of r, nor one after it
		}
		fmt.Println(outcome) // handled or duplicate: the offset may be committed
		return nil
	}
	if err := handle(&kgo.Record{Topic: "shop.orders", Key: []byte("order-1")}); err != nil {
		fmt.Println(err)
	}
}

// The same with database/sql.
func ExampleInbox_ProcessSQL() {
	db, err := sql.Open("pgx", "postgres://app@localhost/payments")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	core, err := inbox.New(inbox.Options{Route: "payments"})
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := postgres.New(core, postgres.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := in.ProcessSQL(context.Background(), db, inbox.Record{Topic: "shop.orders", Key: []byte("order-1")},
		func(ctx context.Context, tx *sql.Tx, m inbox.Message) error {
			_, err := tx.ExecContext(ctx, `insert into payments (order_id) values ($1)`, string(m.Key))
			return err
		})
	fmt.Println(outcome, err)
}

// Marks are kept for a week; call it every few minutes.
func ExampleInbox_Forget() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@localhost/payments")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	core, err := inbox.New(inbox.Options{Route: "payments"})
	if err != nil {
		fmt.Println(err)
		return
	}
	in, err := postgres.New(core, postgres.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	n, err := in.Forget(ctx, pool, postgres.Retention{Keep: 7 * 24 * time.Hour})
	fmt.Println(n, err)
}

func ExampleDDL() {
	fmt.Print(postgres.DDL(nil))
	// Output:
	// create table if not exists "public"."inbox" (
	//     inbox_route  text not null,
	//     message_id   text not null,
	//     processed_at timestamptz not null default now(),
	//     primary key (inbox_route, message_id)
	// );
	// create index if not exists "inbox_processed_at" on "public"."inbox" (inbox_route, processed_at);
}
