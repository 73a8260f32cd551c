package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
)

// sqlURL is the variable that makes this program the bare SQL loop: the least
// that working off a table costs. It takes rows, reads them and settles them over one
// connection, with prepared statements, and publishes nothing (but see kafkaVariable).
const sqlURL = "BENCH_SQL_URL"

// loop is a pair of statements. take answers the fence and whole rows, the id
// first; settle gets the ids and the fence.
type loop struct{ take, settle string }

const (
	// What the relay reads of a row.
	wholeRow = `t.id, t.event_id, t.outbox_route, t.ordering_key, t.event_type, t.payload, t.occurred_at, t.tenant_id, t.execution_id,
		t.correlation_id, t.causation_id, t.traceparent, t.hlc, t.created_at, t.attempts`
	// The due time stands before the order of the table, as in the claim index: else all pending rows are sorted for each claim.
	front = `from outbox t where t.outbox_route = 'orders' and t.status = 'pending' and t.available_at is null
		order by t.available_at, t.hlc, t.created_at, t.id limit %d`
	// Not to be looked up in the claim index: there each mark would pass all dead claims before its own.
	stillProcessing = `status || '' = 'processing'`
	stillPending    = `status || '' = 'pending'`
)

var loops = map[string]loop{
	"poll row": {
		take: `with front as (select t.id ` + front + ` for update skip locked)
			update outbox t set status = 'processing', processing_at = now() from front where t.id = front.id returning t.processing_at, ` + wholeRow,
		settle: `update outbox set status = 'published', published_at = now(), last_error = null
			where id = any ($1::uuid[]) and ` + stillProcessing + ` and processing_at = $2::timestamptz`,
	},
	"poll lease": {
		take: `select null, ` + wholeRow + ` ` + front,
		settle: `update outbox set status = 'published', published_at = now(), last_error = null
			where id = any ($1::uuid[]) and ` + stillPending + ` and $2::timestamptz is null`,
	},
	"poll delete": {
		take:   `select null, ` + wholeRow + ` ` + front,
		settle: `delete from outbox where id = any ($1::uuid[]) and ` + stillPending + ` and $2::timestamptz is null`,
	},
}

// workOff reads args: name of the loop, rows of a batch, number of rows in the table.
func workOff(url string, args []string) error {
	l := loops[args[0]]
	batch, err1 := strconv.Atoi(args[1])
	want, err2 := strconv.Atoi(args[2])
	if l.take == "" || err1 != nil || err2 != nil {
		return fmt.Errorf("%q: want a loop and two numbers", args)
	}
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for name, sql := range map[string]string{"take": fmt.Sprintf(l.take, batch), "settle": l.settle} {
		if _, err := conn.Prepare(ctx, name, sql, nil); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	kafka, err := newProducer()
	if err != nil {
		return err
	}
	for done := 0; done < want; {
		ids, fence, n, err := take(ctx, conn, kafka)
		if err != nil {
			return err
		}
		if kafka != nil {
			if err := kafka.flush(ctx); err != nil {
				return err
			}
		}
		if n == 0 {
			return fmt.Errorf("the table is empty after %d rows, want %d", done, want)
		}
		tag, err := conn.ExecPrepared(ctx, "settle", [][]byte{ids, fence}, nil, nil).Close()
		if err != nil {
			return err
		}
		if tag.RowsAffected() != int64(n) {
			return fmt.Errorf("%d rows were settled, want %d", tag.RowsAffected(), n)
		}
		done += n
	}
	return nil
}

// take claims a batch: the ids as an array's text form.
func take(ctx context.Context, conn *pgconn.PgConn, kafka *producer) (ids, fence []byte, n int, err error) {
	ids = []byte{'{'}
	r := conn.ExecPrepared(ctx, "take", nil, nil, nil)
	for ; r.NextRow(); n++ {
		v := r.Values()
		if n > 0 {
			ids = append(ids, ',')
		}
		ids = append(ids, v[1]...)
		if kafka != nil {
			kafka.publish(v)
		}
		if n == 0 && v[0] != nil {
			fence = append(fence, v[0]...) // all rows of a claim have the same
		}
	}
	_, err = r.Close()
	return append(ids, '}'), fence, n, err
}
