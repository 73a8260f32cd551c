package postgres

import (
	"context"
	"strings"
	"sync"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Table is outbox.Table on Postgres.
type Table struct {
	db    *Database
	l     *layout
	word  *strings.Replacer
	shape *shape

	mu   sync.Mutex
	open map[outbox.Fence]*openClaim // debezium, claim: row
	next uint64                      // names the next of them
	sole sole                        // claim: lease
}

var _ outbox.Table = (*Table)(nil)

// Tables reads the columns of each of the source's relations and makes a Table for each.
func (d *Database) Tables(ctx context.Context) ([]*Table, error) {
	tables := make([]*Table, 0, len(d.o.Tables))
	for _, name := range d.o.Tables {
		l, err := d.readLayout(ctx, name)
		if err != nil {
			return nil, err
		}
		t := &Table{db: d, l: l, word: l.words(), open: map[outbox.Fence]*openClaim{}}
		t.shape = newShape(l, d.o.ExtraColumns)
		tables = append(tables, t)
	}
	return tables, nil
}

// Relation is schema.table.
func (t *Table) Relation() string { return t.l.name.String() }

// Traits say what rows of this table can carry.
func (t *Table) Traits() outbox.Traits {
	states := t.l.states()
	return outbox.Traits{
		States:  t.db.o.AfterPublish != Keep,
		Retries: states && t.l.hasColumn(colAttempts) && t.l.hasColumn(colLastError) && t.l.has(event.AvailableAt),
		Claims:  t.db.o.Claim == ClaimRow && (states || t.l.schema.Preset == event.Debezium),
	}
}

// claimsRows: a claim writes processing.
func (t *Table) claimsRows() bool { return t.l.states() && t.db.o.Claim == ClaimRow }

// deletes: a published row is deleted. In the debezium preset that is the only mark.
func (t *Table) deletes() bool {
	return t.db.o.AfterPublish == Delete || t.l.schema.Preset == event.Debezium && t.db.o.AfterPublish != Keep
}

// sql fills in the relation's names.
func (t *Table) sql(statement string) string { return t.word.Replace(statement) }
