package postgres

import (
	"context"

	"github.com/walrelay/walrelay/outbox"
)

// deleteAll deletes the rows of outcomes where all of them are published rows that
// need no fence: by their ids alone, which costs half of what settlement does.
// whole: every row was there and pending, and is deleted. Otherwise nothing was done, and it is
// to be found out one by one which are missing.
func (t *Table) deleteAll(ctx context.Context, outcomes []outbox.Outcome, some []int) (whole bool, err error) {
	if t.claimsRows() || !t.deletes() || len(some) == 0 {
		return false, nil
	}
	ids := make([]string, len(some))
	for n, i := range some {
		if t.verdict(outcomes[i].Verdict) != outbox.Published {
			return false, nil
		}
		ids[n] = outcomes[i].ID
	}
	count := int64(0)
	s := t.deletion(ids)
	s.count = &count
	err = t.db.converse(ctx, "deleting published rows of "+t.Relation(), func(ctx context.Context, tx *tx) error {
		if err := tx.run(ctx, statement{sql: byIndex}, s); err != nil {
			return err
		}
		whole = count == int64(len(ids))
		if !whole {
			return nil // and so it is rolled back
		}
		return tx.commit(ctx)
	})
	return whole && err == nil, err
}

// deletion deletes pending rows. A join, because = ANY would have the planner walk the
// claim index, which has the id at its end; the guard is disguised as in settlement.
func (t *Table) deletion(ids []string) statement {
	q := &query{}
	return statement{
		sql: t.sql("DELETE FROM {table} t USING (SELECT u.id, TRUE AS yes FROM " + unnest(q.ids(t.l, ids)) + " u (id) OFFSET 0) l\n WHERE t.{id} = l.id AND (" +
			t.l.isPending() + ") = l.yes"),
		args: q.args, formats: q.formats,
	}
}
