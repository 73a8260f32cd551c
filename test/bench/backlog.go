package main

import (
	"context"
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const (
	perTx      = 10_000
	partitions = 12
)

// workload is one kind of backlog.
type workload struct {
	name string
	// table changes the outbox before it is published; write is one transaction of events $1 … $2.
	table, write string
	postgres     string // lines of the relay's configuration
	after        string // what becomes of published rows; empty: they are kept
	messages     bool
	lz4          bool // measured with compression too
}

// payload is an order of about 350 bytes, so that a row is about 500 on the wire.
const payload = `'{"order": "' || md5(i::text) || '", "customer": {"id": ' || (i * 7919) % 1000003 || ', "name": "Customer ' || i % 20000 || '"}, "lines": [{"sku": "' ||
	substr(md5((i + 1)::text), 1, 12) || '", "quantity": ' || i % 7 + 1 || ', "price": ' || (i % 9973)::numeric / 100 || '}, {"sku": "' || substr(md5((i + 2)::text), 1, 12) ||
	'", "quantity": 1, "price": 19.90}], "total": ' || (i % 99991)::numeric / 100 || ', "currency": "EUR", "paid": true, "note": "' || md5((i + 3)::text) || md5((i + 4)::text) || '"}'`

func insert(kind string) string {
	return `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key, hlc)
		select gen_random_uuid(), gen_random_uuid(), 'orders', 'OrderPlaced', clock_timestamp(), (` + payload + `)::` + kind + `, 'customer-' || i % 20000, i << 16
		from generate_series($1::bigint, $2::bigint) i`
}

var workloads = map[string]workload{
	"jsonb": {name: "jsonb", write: insert("jsonb"), lz4: true},
	"text": {
		name: "text", table: `alter table outbox alter column payload type text`,
		write: insert("text"), lz4: true,
	},
	"messages": {
		name: "messages", postgres: "messages: [outbox]\n", messages: true,
		write: `select count(pg_logical_emit_message(true, 'outbox/orders/customer-' || i % 20000, ` + payload + `)) from generate_series($1::bigint, $2::bigint) i`,
	},
}

// backlog is what all drains of a workload read.
type backlog struct {
	workload
	house *rig.House
	rows  int
	end   string // the server's log after it
	route string // options of the relay's route, each behind a comma
}

// preload makes a database with an outbox and a slot, and fills it.
func (s *site) preload(t *crew, w workload) *backlog {
	h := rig.NewHouse(t, s.pg, s.kafka.Brokers(), "")
	h.Postgres = w.postgres + "check_interval: 10s\n"
	h.Topic = "unused"
	if w.after != "" {
		h.Source = "after_publish: " + w.after + "\n"
	}
	h.Init(t)
	if w.table != "" {
		// A published column keeps its type, so what init made is made again on the changed table.
		h.Exec(t, `select pg_drop_replication_slot('`+h.Slot+`'); drop publication "`+h.Publication+`"; delete from walrelay.source`)
		h.Exec(t, w.table)
		h.Init(t)
	}
	if w.after != "" {
		s.firstLife(t, h)
	}
	began := time.Now()
	conn := s.pg.Conn(t, h.Database)
	ctx := context.Background()
	for from := 1; from <= s.rows; from += perTx {
		if _, err := conn.Exec(ctx, w.write, from, min(from+perTx-1, s.rows)); err != nil {
			t.Fatalf("writing the backlog: %v", err)
		}
	}
	b := &backlog{workload: w, house: h, rows: s.rows}
	if err := conn.QueryRow(ctx, `select pg_current_wal_flush_lsn()::text`).Scan(&b.end); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d rows written in %.1f s", w.name, s.rows, time.Since(began).Seconds())
	return b
}

// firstLife lets a relay begin and end before there is anything to publish. Where
// rows are marked, the first one would take the backlog from the table.
func (s *site) firstLife(t *crew, house *rig.House) {
	h := *house
	h.Topic = s.kafka.Topic(t, partitions, nil)
	r := h.Start(t)
	conn := s.pg.Conn(t, h.Database)
	rig.Eventually(t, "the stream", 30*time.Second, func() error {
		var phase event.Phase
		err := conn.QueryRow(context.Background(), `select phase from walrelay.source`).Scan(&phase)
		if err == nil && phase != event.PhaseStreaming {
			err = fmt.Errorf("the phase is %s", phase)
		}
		return err
	})
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("walrelay exited %d:\n%s", code, r.Log())
	}
}

// copySlot makes a slot that begins where the backlog's own begins; it is
// dropped with the scope.
func (b *backlog) copySlot(t *crew, name string) {
	b.house.Exec(t, `select pg_copy_logical_replication_slot($1, $2)`, b.house.Slot, name)
	t.Cleanup(func() { dropSlot(t, b.house.PG, b.house.Database, name) })
}

func dropSlot(t *crew, pg *pgserver.Server, database, name string) {
	rig.Eventually(t, "the end of slot "+name, 30*time.Second, func() error {
		_, err := pg.Conn(t, database).Exec(context.Background(), `select pg_drop_replication_slot($1)`, name)
		return err
	})
}
