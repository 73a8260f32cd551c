package postgres_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/stage/postgres"
)

// placeOrder is a whole unit of work: the business change and what it has to say,
// in one transaction.
func placeOrder(ctx context.Context, pool *pgxpool.Pool, out *postgres.Outbox, order string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		b := out.Buffer() // inside: a retry begins with an empty one
		if _, err := tx.Exec(ctx, `insert into orders (id) values ($1)`, order); err != nil {
			return err
		}
		if _, err := b.Stage(ctx, stage.Event{Route: "orders", Type: "OrderPlaced", Key: order, Payload: map[string]string{"id": order}}); err != nil {
			return err
		}
		_, err := out.Flush(ctx, postgres.Pgx(tx), b) // last
		return err
	})
}

func ExampleOutbox_Flush() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@localhost/shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	// Once for the process, before anything is stamped.
	out, err := postgres.Open(ctx, postgres.Pgx(pool), postgres.Options{Checkpoint: postgres.Checkpoint{NodeKey: "shop-1", Stripes: 16}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := placeOrder(ctx, pool, out, "order-1"); err != nil {
		fmt.Println(err)
	}
}

// payOrder does the same through database/sql.
func payOrder(ctx context.Context, db *sql.DB, out *postgres.Outbox, order string, event uuid.UUID) (ignored int, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, `update orders set paid = true where id = $1`, order); err != nil {
		return 0, err
	}
	b := out.Buffer()
	// An id of our own making: if the commit's answer is lost, this can be run again.
	if _, err := b.Stage(ctx, stage.Event{ID: event, Route: "orders", Type: "OrderPaid", Key: order, Payload: map[string]string{"id": order}}); err != nil {
		return 0, err
	}
	res, err := out.Flush(ctx, postgres.SQL(tx), b)
	if err != nil {
		return 0, err
	}
	return len(res.Ignored), tx.Commit()
}

func ExampleSQL() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://app@localhost/shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = db.Close() }()
	out, err := postgres.Open(ctx, postgres.SQL(db), postgres.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := payOrder(ctx, db, out, "order-1", uuid.NewSHA1(uuid.NameSpaceOID, []byte("payment of order-1"))); err != nil {
		fmt.Println(err)
	}
}

// signal sends bytes that are no JSON; there is no table.
func signal(ctx context.Context, pool *pgxpool.Pool, out *postgres.Outbox, frame []byte) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return out.Emit(ctx, postgres.Pgx(tx), stage.Message{Route: "frames", Key: "camera/1", Content: frame})
	})
}

func ExampleOutbox_Emit() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@localhost/shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	out, err := postgres.Open(ctx, postgres.Pgx(pool), postgres.Options{Form: postgres.Messages})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := signal(ctx, pool, out, []byte{0xca, 0xfe}); err != nil {
		fmt.Println(err)
	}
}

func ExampleCheckpoint_DDL() {
	fmt.Println(postgres.Checkpoint{}.DDL())
	// Output:
	// CREATE TABLE IF NOT EXISTS "public"."hlc_checkpoint" (
	// 	node_key text PRIMARY KEY,
	// 	hlc bigint NOT NULL
	// )
}
