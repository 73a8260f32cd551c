package postgres

import (
	"context"

	"github.com/walrelay/walrelay/outbox"
)

// backlogPart is how many rows a [Backlog] watches at a time.
const backlogPart = 100_000

// Backlog is the rows that were not published at one moment, and of them those that
// are not published yet. Rows that come later do not count, so that a table that is written
// to all the time can be waited for.
type Backlog struct {
	t     *Table
	loose []string
	ids   []string
	parts int // how many more have to be looked at
}

// Backlog takes the moment. Rows on routes that are loose are not held by keys.
func (t *Table) Backlog(ctx context.Context, loose []string) (*Backlog, error) {
	b := &Backlog{t: t, loose: loose}
	var total int64
	err := t.db.transact(ctx, "counting unpublished rows of "+t.Relation(), statement{
		sql: t.sql("SELECT pg_catalog.count(*) FROM {table} t WHERE " + t.l.isOpen()), row: into(&total),
	})
	if err != nil {
		return nil, err
	}
	b.parts = int((total + backlogPart - 1) / backlogPart)
	return b, b.next(ctx, nil)
}

// isOpen is the condition that t's row is neither published nor given up.
func (l *layout) isOpen() string {
	if l.states() {
		return "t.{status} IN ('pending', 'processing')"
	}
	return l.isPending()
}

// next takes the oldest rows, where more parts are owed: new rows come after them.
func (b *Backlog) next(ctx context.Context, held []string) error {
	if b.parts == 0 {
		return nil
	}
	b.parts--
	return b.read(ctx, held, "", nil)
}

// Left looks again, and answers how many rows are watched and not published yet. Those
// whose key is among held wait for a human, and do not count.
func (b *Backlog) Left(ctx context.Context, held []string) (int, error) {
	if len(b.ids) > 0 {
		watched := array(b.ids)
		if err := b.read(ctx, held, " AND t.{id} = ANY (", watched); err != nil {
			return 0, err
		}
	}
	if len(b.ids) == 0 && b.parts > 0 {
		if err := b.next(ctx, held); err != nil {
			return 0, err
		}
	}
	return len(b.ids), nil
}

func (b *Backlog) read(ctx context.Context, held []string, only string, watched []byte) error {
	q := &query{}
	where := b.t.l.isOpen() + q.wanted(b.t.l, &outbox.Request{Held: held, Loose: b.loose})
	if only != "" {
		where += only + q.arg(watched) + "::{id_type}[])"
	}
	var ids []string
	err := b.t.db.transact(ctx, "looking for unpublished rows of "+b.t.Relation(), statement{
		args: q.args, formats: q.formats, sql: b.t.sql("SELECT t.{id} FROM {table} t WHERE " + where + " ORDER BY " + b.t.l.order() + " LIMIT " + string(number(backlogPart))),
		row: func(v [][]byte) error { ids = append(ids, string(v[0])); return nil },
	})
	if err == nil {
		b.ids = ids
	}
	return err
}
