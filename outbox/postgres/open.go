package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/walrelay/walrelay/outbox"
)

// openClaim is a claim that is nothing but locks: rows of a table without states,
// locked in a transaction that stays open until each has its outcome. A connection
// that breaks gives the rows back by itself.
type openClaim struct {
	mu   sync.Mutex
	tx   *tx
	left map[string]struct{} // rows without an outcome
	over bool
}

// claimOpen locks rows, and names the transaction by the fence.
func (t *Table) claimOpen(ctx context.Context, req *outbox.Request) (*outbox.Claim, error) {
	doing := "claiming rows of " + t.Relation()
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	tx, err := t.db.begin(ctx, t.db.open)
	if err != nil {
		return nil, t.db.classify(err, doing)
	}
	claim := &outbox.Claim{}
	err = tx.run(ctx, t.selection(req, " FOR UPDATE SKIP LOCKED", t.collect(claim, req.Limit, nil)))
	if err != nil || len(claim.Rows) == 0 {
		tx.end(ctx)
		return claim, t.db.classify(err, doing)
	}
	c := &openClaim{tx: tx, left: make(map[string]struct{}, len(claim.Rows))}
	for i := range claim.Rows {
		c.left[claim.Rows[i].ID] = struct{}{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	claim.Fence = outbox.Fence(fmt.Sprintf("transaction %d", t.next))
	t.open[claim.Fence] = c
	return claim, nil
}

func (t *Table) claimOf(fence outbox.Fence) *openClaim {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[fence]
}

func (t *Table) forget(fence outbox.Fence) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, fence)
}

// settleOpen deletes published rows inside their claims' transactions, and commits
// each claim with its last outcome. What a claim that is over had left is lost.
func (t *Table) settleOpen(ctx context.Context, outcomes []outbox.Outcome) (lost []int, err error) {
	claims := map[outbox.Fence][]int{}
	var fences []outbox.Fence
	for i := range outcomes {
		f := outcomes[i].Fence
		if _, known := claims[f]; !known {
			fences = append(fences, f)
		}
		claims[f] = append(claims[f], i)
	}
	for _, f := range fences {
		l, failed := t.settleClaim(ctx, f, outcomes, claims[f])
		lost = append(lost, l...)
		if err == nil {
			err = failed
		}
	}
	return lost, t.db.classify(err, "deleting published rows of "+t.Relation())
}

func (t *Table) settleClaim(ctx context.Context, f outbox.Fence, outcomes []outbox.Outcome, of []int) (lost []int, err error) {
	c := t.claimOf(f)
	if c == nil {
		return of, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return of, nil
	}
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	var gone []string
	for _, i := range of {
		if _, ours := c.left[outcomes[i].ID]; !ours {
			lost = append(lost, i)
			continue
		}
		delete(c.left, outcomes[i].ID)
		if t.verdict(outcomes[i].Verdict) == outbox.Published {
			gone = append(gone, outcomes[i].ID)
		}
	}
	last := len(c.left) == 0
	var work []statement
	if len(gone) > 0 {
		work = append(work, statement{args: [][]byte{array(gone)}, sql: t.sql("DELETE FROM {table} t WHERE t.{id} = ANY ($1::{id_type}[])")})
	}
	switch {
	case last:
		err = c.tx.commit(ctx, work...)
	case len(work) > 0:
		err = c.tx.run(ctx, work...)
	}
	if err != nil || last {
		c.over = true
		c.tx.end(ctx)
		t.forget(f)
	}
	return lost, err
}

// renewOpen sees that the transaction is still there, and keeps the server and
// whatever stands between from taking it for idle.
func (t *Table) renewOpen(ctx context.Context, f outbox.Fence, ids []string) (outbox.Fence, []string, error) {
	c := t.claimOf(f)
	if c == nil {
		return f, nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return f, nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, silenceTimeout)
	defer cancel()
	if err := c.tx.run(ctx, statement{sql: "SELECT 1"}); err != nil {
		c.over = true
		c.tx.end(ctx)
		t.forget(f)
		return f, nil, nil // the locks are gone: all of it is lost
	}
	var held []string
	for _, id := range ids {
		if _, ours := c.left[id]; ours {
			held = append(held, id)
		}
	}
	return f, held, nil
}
