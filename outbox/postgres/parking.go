package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

const anchorParkingFull event.Anchor = "parking-full"

// defaultBudget bounds the events that are kept whole, where the options do not.
const defaultBudget = 10_000

// Parking is outbox.Parking on Postgres: the table parked of walrelay's own schema.
//
// An entry is one of two kinds. Where a row can be failed, the row stays the event and the
// entry only names it (record is null). Everything else is kept whole: the record as it
// was routed, and its key and value as they are.
type Parking struct {
	db    *Database
	table string // the quoted name

	mu     sync.Mutex
	tables map[string]*Table // by relation; read when first needed
}

var _ outbox.Parking = (*Parking)(nil)

// Parking is the source's parking store. Options.Bookkeeping must be set.
func (d *Database) Parking() *Parking {
	return &Parking{db: d, table: Name{d.o.Bookkeeping, "parked"}.SQL(), tables: map[string]*Table{}}
}

// Source is the name of the source in the configuration.
func (k *Parking) Source() string { return k.db.o.Source }

// tableOf is the table that the event is a row of; nil where there is none.
func (k *Parking) tableOf(ctx context.Context, relation, row string) (*Table, error) {
	if row == "" {
		return nil, nil
	}
	k.mu.Lock()
	t := k.tables[relation]
	k.mu.Unlock()
	if t != nil {
		return t, nil
	}
	for _, name := range k.db.o.Tables {
		if name.String() != relation {
			continue
		}
		l, err := k.db.readLayout(ctx, name)
		if err != nil {
			return nil, err
		}
		t = &Table{db: k.db, l: l, word: l.words()}
		k.mu.Lock()
		k.tables[relation] = t
		k.mu.Unlock()
		return t, nil
	}
	return nil, nil
}

// fails says whether a row of the table can be failed and tried again.
func (t *Table) fails() bool { return t != nil && t.Traits().Retries && t.db.o.AfterPublish != Keep }

// Park puts one event aside. A row that was published meanwhile stays so: there is
// nothing to put aside any more.
func (k *Parking) Park(ctx context.Context, p outbox.Parked) error {
	t, err := k.tableOf(ctx, p.Relation, p.Row)
	if err != nil {
		return err
	}
	doing := "putting event " + p.EventID + " aside"
	if !t.fails() {
		return k.db.converse(ctx, doing, func(ctx context.Context, tx *tx) error {
			// The row of a table without failed rows is done with, or the table reader
			// would publish it. One that was claimed is settled by whoever claimed it.
			if t == nil || p.Commit.IsZero() || k.db.o.AfterPublish == Keep {
				return k.keepWhole(ctx, tx, p, outbox.StateParked, nil)
			}
			look, there := visibility{xid: p.Xid}, false
			if err := tx.run(ctx, statement{sql: byIndex}, look.statement(), statement{
				// Locked: settling passes over rows that others hold.
				sql:  t.sql("SELECT FROM {table} t WHERE t.{id} = $1::{id_type} FOR UPDATE OF t"),
				args: [][]byte{text(p.Row)},
				row:  func([][]byte) error { there = true; return nil },
			}); err != nil {
				return err
			}
			if !there && !look.sees() {
				return notVisible(t, p.Row)
			}
			return k.keepWhole(ctx, tx, p, outbox.StateParked, []statement{t.marking([]outbox.Mark{{ID: p.Row}}, []int{0}, outbox.Published)})
		})
	}
	return k.db.converse(ctx, doing, func(ctx context.Context, tx *tx) error {
		look := visibility{xid: p.Xid}
		state := ""
		err := tx.run(ctx, statement{sql: byIndex}, look.statement(), statement{
			sql: t.sql(`WITH l AS MATERIALIZED (SELECT ` + t.l.handle().selected() + `, t.{status} AS old FROM {table} t
 WHERE t.{id} = $1::{id_type} FOR UPDATE OF t),
f AS (UPDATE {table} t SET {status} = 'failed', "last_error" = $2::pg_catalog.text FROM l WHERE ` + t.l.handle().same("l") + ` AND l.old <> 'published')
SELECT l.old FROM l`),
			args: [][]byte{text(p.Row), text(outbox.Printable(p.Error))},
			row:  func(v [][]byte) error { state = string(v[0]); return nil },
		})
		switch {
		case err != nil:
			return err
		case state == "published":
			return nil
		case state != "":
			p.Commit, p.Ordinal, p.Record = event.Position{}, 0, nil // the row is its identity
			return tx.commit(ctx, k.insert(&p, outbox.StateParked, ""))
		case !look.sees():
			return notVisible(t, p.Row)
		case p.Record == nil:
			return nil // deleted by whoever it belonged to
		}
		return k.keepWhole(ctx, tx, p, outbox.StateParked, nil)
	})
}

// LeaveBehind puts an event aside whose key is held by another one. A row that is there is
// left as it is: pending, it is found again; in any other state it is somebody's already. Behind
// an event that is kept whole, a pending row is kept whole too: it must not be found before that.
func (k *Parking) LeaveBehind(ctx context.Context, p outbox.Parked) error {
	t, err := k.tableOf(ctx, p.Relation, p.Row)
	if err != nil {
		return err
	}
	return k.db.converse(ctx, "leaving event "+p.EventID+" behind its key", func(ctx context.Context, tx *tx) error {
		if t == nil || k.db.o.AfterPublish == Keep {
			return k.keepWhole(ctx, tx, p, outbox.StateBehind, nil)
		}
		look, there, pending, whole := visibility{xid: p.Xid}, false, false, false
		if err := tx.run(ctx, statement{sql: byIndex}, look.statement(), statement{
			sql: `SELECT EXISTS (SELECT FROM ` + k.table + ` e WHERE e.owner = $1::pg_catalog.text AND e.key = $2::pg_catalog.text
 AND e.state = 'behind' AND e.record IS NOT NULL)`,
			args: [][]byte{text(k.db.o.Owner), text(outbox.PlainText(p.Key))},
			row:  func(v [][]byte) error { whole = p.Key != "" && string(v[0]) == "t"; return nil },
		}, statement{
			// Locked, so that the state still holds when the row is settled.
			sql:  t.sql("SELECT " + t.l.isPending() + " FROM {table} t WHERE t.{id} = $1::{id_type} FOR UPDATE OF t"),
			args: [][]byte{text(p.Row)},
			row:  func(v [][]byte) error { there, pending = true, string(v[0]) == "t"; return nil },
		}); err != nil {
			return err
		}
		switch {
		case there && pending && whole:
			return k.keepWhole(ctx, tx, p, outbox.StateBehind, []statement{t.marking([]outbox.Mark{{ID: p.Row}}, []int{0}, outbox.Published)})
		case there:
			return nil
		case !look.sees():
			return notVisible(t, p.Row)
		}
		return k.keepWhole(ctx, tx, p, outbox.StateBehind, nil)
	})
}

// visibility asks, before other statements of a transaction, whether another
// transaction, of which the log told, can be seen by them.
type visibility struct {
	xid uint32
	now snapshot
}

func (l *visibility) statement() statement {
	return statement{sql: "select pg_catalog.pg_current_snapshot()", row: func(v [][]byte) (err error) {
		l.now, err = parseSnapshot(string(v[0]))
		return err
	}}
}

func (l *visibility) sees() bool { return l.now.sees(l.xid) }

func notVisible(t *Table, row string) error {
	return &event.Error{
		Class: event.Retry, Anchor: anchorTable,
		What: fmt.Sprintf("row %s of %s is not visible yet, although the log has its commit: a synchronous standby has not answered", row, t.Relation()),
	}
}

// keepWhole puts the event itself into the store, within the budget, with other
// statements in the same transaction.
func (k *Parking) keepWhole(ctx context.Context, tx *tx, p outbox.Parked, state outbox.ParkState, also []statement) error {
	if p.Record == nil {
		return fmt.Errorf("event %s is to be kept whole and came without its record", p.EventID)
	}
	record, err := outbox.EncodeRecord(p.Record)
	if err != nil {
		return err
	}
	budget := k.db.o.ParkedBudget
	if budget <= 0 {
		budget = defaultBudget
	}
	full, known := false, false
	same := statement{
		sql: `SELECT (SELECT pg_catalog.count(*) FROM (SELECT FROM ` + k.table + ` WHERE owner = $1::pg_catalog.text AND record IS NOT NULL
  LIMIT $7::pg_catalog.int8) w) >= $7::pg_catalog.int8,
 EXISTS (SELECT FROM ` + k.table + ` WHERE owner = $1::pg_catalog.text AND relation = $2::pg_catalog.text AND row_id = $3::pg_catalog.text
  AND event_id = $4::pg_catalog.text AND coalesce(commit_lsn, '0/0'::pg_catalog.pg_lsn) = $5::pg_catalog.pg_lsn AND ordinal = $6::pg_catalog.int8)`,
		args: append(k.identity(&p), number(budget)),
		row:  func(v [][]byte) error { full, known = string(v[0]) == "t", string(v[1]) == "t"; return nil },
	}
	if err := tx.run(ctx, same); err != nil {
		return err
	}
	if full && !known {
		return &event.Error{
			Class: event.Halt, Fault: event.FaultPrecondition, Anchor: anchorParkingFull,
			What: fmt.Sprintf("%d events of source %s are kept whole in %s, which is all that may be; event %s finds no room", budget, k.db.o.Source,
				k.table, p.EventID),
			Remedy: "let the parked events go with 'walrelay parked retry', or give them up with 'walrelay parked drop', then start the relay again",
		}
	}
	return tx.commit(ctx, append(also, k.insert(&p, state, record))...)
}

// identity is what an event is known by: the first parameters of a statement.
func (k *Parking) identity(p *outbox.Parked) [][]byte {
	return [][]byte{
		text(k.db.o.Owner), text(p.Relation), text(p.Row), text(outbox.PlainText(p.EventID)), text(p.Commit.LSN.String()),
		number(int64(p.Ordinal)),
	}
}

// insert enters an event; record is empty where its row is the event. One that is there already is
// parked again if it was on its way, and stays as it is otherwise.
func (k *Parking) insert(p *outbox.Parked, state outbox.ParkState, record string) statement {
	args := append(k.identity(p), text(string(state)), text(outbox.PlainText(p.Route)), text(outbox.PlainText(p.Key)), text(outbox.PlainText(p.Topic)),
		text(outbox.Printable(p.Reason)), text(outbox.Printable(p.Error)), nil, nil, nil)
	if record != "" {
		args[12], args[13], args[14] = text(record), hexadecimal(p.Record.Value), hexadecimal(p.Record.Key)
	}
	again := "NOTHING"
	if state == outbox.StateParked {
		again = "UPDATE SET state = excluded.state, reason = excluded.reason, error = excluded.error WHERE e.state <> 'parked'"
	}
	return statement{args: args, sql: `INSERT INTO ` + k.table + ` AS e
 (owner, relation, row_id, event_id, commit_lsn, ordinal, state, route, key, topic, reason, error, record, value, record_key)
VALUES ($1::pg_catalog.text, $2::pg_catalog.text, $3::pg_catalog.text, $4::pg_catalog.text,
 nullif($5::pg_catalog.pg_lsn, '0/0'::pg_catalog.pg_lsn), $6::pg_catalog.int8, $7::pg_catalog.text, $8::pg_catalog.text, $9::pg_catalog.text,
 $10::pg_catalog.text, $11::pg_catalog.text, $12::pg_catalog.text, $13::pg_catalog.jsonb, $14::pg_catalog.bytea, $15::pg_catalog.bytea)
ON CONFLICT (owner, relation, row_id, event_id, coalesce(commit_lsn, '0/0'::pg_catalog.pg_lsn), ordinal) DO ` + again}
}
