package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Settle writes outcomes of claimed rows, each guarded by its fence: one statement for
// each kind of verdict, all in one transaction.
func (t *Table) Settle(ctx context.Context, outcomes []outbox.Outcome) (lost []int, err error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	if t.Traits().Claims && !t.l.states() {
		return t.settleOpen(ctx, outcomes)
	}
	if err := t.settleable(outcomes); err != nil {
		return nil, err
	}
	all := make([]int, 0, len(outcomes))
	for i := range outcomes {
		if !t.writesNothing(outcomes[i].Verdict) {
			all = append(all, i)
		}
	}
	// Rows that somebody holds the lock of are passed over and come again: an application
	// that locks rows in another order than ours would meet us in a deadlock.
	began := time.Now()
	for wait := shortestWait; ; wait = min(2*wait, longestWait) {
		missed, err := t.write(ctx, outcomes, all)
		if err != nil {
			return nil, err
		}
		gone, held, err := t.sift(ctx, outcomes, missed)
		lost = append(lost, gone...)
		if err != nil || len(held) == 0 {
			slices.Sort(lost)
			return lost, err
		}
		if time.Since(began) > lockPatience {
			return nil, &event.Error{
				Class: event.Retry, Anchor: anchorTable,
				What: fmt.Sprintf("outcomes of %d rows cannot be written to %s: somebody has held their locks for %s", len(held), t.Relation(), lockPatience),
			}
		}
		all = held
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// lockPatience is how long rows may stay locked by somebody before it is said. The
// caller asks again; what was written stays so.
const lockPatience = 5 * time.Second

// The pauses between two looks at rows that somebody holds the lock of.
const shortestWait, longestWait = 2 * time.Millisecond, 200 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write writes some of the outcomes and answers which of them it missed.
func (t *Table) write(ctx context.Context, outcomes []outbox.Outcome, some []int) (missed []int, err error) {
	if whole, err := t.deleteAll(ctx, outcomes, some); whole || err != nil {
		return nil, err
	}
	var (
		kinds [4][]int
		hit   = make([]bool, len(outcomes))
		work  = []statement{{sql: byIndex}}
	)
	for _, i := range some {
		v := t.verdict(outcomes[i].Verdict)
		kinds[v] = append(kinds[v], i)
	}
	for v, of := range kinds {
		if len(of) == 0 {
			continue
		}
		s := t.settlement(outbox.Verdict(v), outcomes, of)
		s.row = func(v [][]byte) error {
			return eachNumber(v[0], func(n int) { hit[n] = true })
		}
		work = append(work, s)
	}
	if len(work) == 1 {
		return nil, nil
	}
	if err := t.db.transact(ctx, "writing outcomes to "+t.Relation(), work...); err != nil {
		return nil, err
	}
	for _, i := range some {
		if !hit[i] {
			missed = append(missed, i)
		}
	}
	return missed, nil
}

// settleable refuses verdicts that the table has no columns for.
func (t *Table) settleable(outcomes []outbox.Outcome) error {
	if !t.l.states() {
		return nil
	}
	if t.claimsRows() {
		if err := t.l.need("claim: row", colProcessingAt); err != nil {
			return err
		}
	}
	for i := range outcomes {
		if outcomes[i].Verdict == outbox.Retry && !t.Traits().Retries {
			return t.l.need("a retry", t.l.schema.Columns[event.AvailableAt], colAttempts, colLastError)
		}
	}
	return nil
}

// verdict is what a verdict comes to in this table: without states a row that was given
// up is kept elsewhere, whole, and leaves the table as a published one does.
func (t *Table) verdict(v outbox.Verdict) outbox.Verdict {
	if v == outbox.Failed && !t.l.states() {
		return outbox.Published
	}
	return v
}

// writesNothing: where a claim wrote nothing, giving the row back writes nothing; and
// without states there is nowhere to write a retry.
func (t *Table) writesNothing(v outbox.Verdict) bool {
	switch v {
	case outbox.Released:
		return !t.claimsRows()
	case outbox.Retry:
		return !t.l.states()
	}
	return false
}

// settlement locks the rows that are still ours, in the order of their ids, and
// writes one kind of verdict. It answers their indexes.
func (t *Table) settlement(v outbox.Verdict, outcomes []outbox.Outcome, of []int) statement {
	q := &query{}
	ids := make([]string, len(of))
	for n, i := range of {
		ids[n] = outcomes[i].ID
	}
	values, names := []string{q.ids(t.l, ids), q.arg(numbers(of)) + "::pg_catalog.int4[]"}, "id, n"
	with := func(arg []byte, typ, name string) {
		values = append(values, q.arg(arg)+"::"+typ+"[]")
		names += ", " + name
	}
	guard := t.l.isPending()
	if t.claimsRows() {
		fences := make([]string, len(of))
		for n, i := range of {
			fences[n] = string(outcomes[i].Fence)
		}
		with(array(fences), t.l.columns[colProcessingAt].typ, "fence")
		guard = `t.{status} = 'processing' AND t."processing_at" = u.fence`
	}
	carried, set := ", u.n AS n", ""
	hasError := t.l.hasColumn(colLastError)
	switch v {
	case outbox.Published:
		set = t.publishedSet()
	case outbox.Failed:
		set = "{status} = 'failed'"
		if hasError {
			with(optionalArray(errorsOf(outcomes, of)), "pg_catalog.text", "error")
			carried, set = carried+", u.error AS error", set+`, "last_error" = l.error`
		}
	case outbox.Retry:
		attempts, delays := make([]int, len(of)), make([]int, len(of))
		for n, i := range of {
			attempts[n], delays[n] = outcomes[i].Attempts, int(outcomes[i].Delay.Microseconds())
		}
		with(numbers(attempts), "pg_catalog.int4", "attempts")
		with(numbers(delays), "pg_catalog.int8", "delay")
		with(optionalArray(errorsOf(outcomes, of)), "pg_catalog.text", "error")
		carried += ", u.attempts AS attempts, u.delay AS delay, u.error AS error"
		set = `{status} = 'pending', "attempts" = l.attempts, "last_error" = l.error,
 {available} = pg_catalog.clock_timestamp() + l.delay * '1 microsecond'::pg_catalog.interval` + t.noClaim()
	case outbox.Released:
		set = "{status} = 'pending'" + t.noClaim()
	}
	source := unnest(values...) + " u (" + names + ")"
	if !t.claimsRows() {
		// Under a lease nobody else works at these rows: they need no locks beforehand, and are
		// written as they come, which is nearly the order of the table: random ids would
		// touch its pages at random. The guard is disguised, lest the planner should begin with
		// a list of pending rows, of whose length it may have no idea.
		source = "(SELECT u.*, TRUE AS yes FROM " + source + " OFFSET 0) l"
		return statement{args: q.args, formats: q.formats, sql: t.sql("WITH " + t.done(v, set, source) + " WHERE t.{id} = l.id AND (" + guard + ") = l.yes" + numbersDone)}
	}
	h := t.l.place()
	return statement{args: q.args, formats: q.formats, sql: t.sql("WITH " + h.byID(source, guard, carried, skipLocked) + ", " + t.done(v, set, "l") + " WHERE " + h.same("l") + numbersDone)}
}

func errorsOf(outcomes []outbox.Outcome, of []int) []string {
	errs := make([]string, len(of))
	for n, i := range of {
		errs[n] = outbox.Printable(outcomes[i].Error)
	}
	return errs
}

// numbersDone answers in one row which outcomes were written: thousands of small rows
// would cost as much as the writing.
const numbersDone = " RETURNING l.n)\nSELECT pg_catalog.array_agg(d.n) FROM done d"

func (t *Table) done(v outbox.Verdict, set, from string) string {
	if v == outbox.Published && t.deletes() {
		return "done AS (DELETE FROM {table} t USING " + from
	}
	return "done AS (UPDATE {table} t SET " + set + " FROM " + from
}

// unnest takes arrays apart side by side; the short form unnest(a, b) is not for a
// qualified name.
func unnest(arrays ...string) string {
	return "ROWS FROM (pg_catalog.unnest(" + strings.Join(arrays, "), pg_catalog.unnest(") + "))"
}

// noClaim clears the mark of a claim, where the table has one.
func (t *Table) noClaim() string {
	if !t.l.hasColumn(colProcessingAt) {
		return ""
	}
	return `, "processing_at" = NULL`
}

// publishedSet are the columns of a published row.
func (t *Table) publishedSet() string {
	if !t.l.states() {
		return "{published} = pg_catalog.clock_timestamp()"
	}
	set := "{status} = 'published'"
	if t.l.has(event.PublishedAt) {
		set += ", {published} = pg_catalog.clock_timestamp()"
	}
	if t.l.hasColumn(colLastError) {
		set += `, "last_error" = NULL`
	}
	return set
}

// sift tells apart why outcomes were missed. gone: the claim is not ours any more.
// held: it is, and somebody held the row's lock. In neither are those that were written after
// all, by this very call when it is repeated because the first answer was lost with the
// connection: the fence stays in a row that was published or failed.
func (t *Table) sift(ctx context.Context, outcomes []outbox.Outcome, missed []int) (gone, held []int, err error) {
	if !t.claimsRows() || len(missed) == 0 {
		return missed, nil, nil // under a lease nothing is passed over
	}
	ids, fences := make([]string, len(missed)), make([]string, len(missed))
	for n, i := range missed {
		ids[n], fences[n] = outcomes[i].ID, string(outcomes[i].Fence)
	}
	ours := map[string]string{}
	err = t.db.transact(ctx, "looking for lost claims in "+t.Relation(), statement{sql: byIndex}, statement{
		sql: t.sql(`SELECT t.{id}, t.{status} FROM ` + unnest("$1::{id_type}[]", "$2::"+t.l.columns[colProcessingAt].typ+"[]") + ` u (id, fence)
 JOIN {table} t ON t.{id} = u.id AND t."processing_at" = u.fence WHERE t.{status} IN ('processing', 'published', 'failed')`),
		args: [][]byte{array(ids), array(fences)},
		row:  func(v [][]byte) error { ours[string(v[0])] = string(v[1]); return nil },
	})
	if err != nil {
		return nil, nil, err
	}
	for _, i := range missed {
		switch s, v := ours[outcomes[i].ID], outcomes[i].Verdict; {
		case s == "processing":
			held = append(held, i)
		case s == "published" && v == outbox.Published, s == "failed" && v == outbox.Failed:
		default:
			gone = append(gone, i)
		}
	}
	return gone, held, nil
}
