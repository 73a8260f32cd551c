package mongo

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Settle writes outcomes of claimed rows, each guarded by its claim's token and the state, in
// one command for updates and one for deletions. It is not one transaction: outcomes do not depend on each
// other, and a call that failed half-way is repeated as it is.
func (t *Table) Settle(ctx context.Context, outcomes []outbox.Outcome) (lost []int, err error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	var deleted, updated []int
	for i := range outcomes {
		switch v := t.verdict(outcomes[i].Verdict); {
		case t.writesNothing(v):
		case v == outbox.Published && t.deletes():
			deleted = append(deleted, i)
		default:
			updated = append(updated, i)
		}
	}
	err = t.with(ctx, "writing outcomes to", func(ctx context.Context, c *driver.Collection) error {
		gone, err := t.settleUpdates(ctx, c, outcomes, updated)
		if err != nil {
			return err
		}
		lost = gone
		gone, err = t.settleDeletions(ctx, c, outcomes, deleted)
		lost = append(lost, gone...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(lost)
	return lost, nil
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

// guard are the conditions of a row that an outcome of the fence may be written to.
func (t *Table) guard(f outbox.Fence) bson.D {
	if t.claimsRows() {
		return bson.D{is(fieldClaimToken, tokenOf(f)), is(t.l.column(event.Status), processing)}
	}
	return t.l.isPending()
}

// alike is what outcomes have in common that one statement writes.
type alike struct {
	fence   outbox.Fence
	verdict outbox.Verdict
	change  outbox.Outcome // without id and fence
}

// group puts outcomes together that are written alike, in the order in which they came.
func (t *Table) group(outcomes []outbox.Outcome, some []int) (kinds []alike, of map[alike][]int) {
	of = map[alike][]int{}
	for _, i := range some {
		k := alike{outcomes[i].Fence, t.verdict(outcomes[i].Verdict), outcomes[i]}
		k.change.ID, k.change.Fence = "", ""
		if k.verdict == outbox.Published || k.verdict == outbox.Released {
			k.change = outbox.Outcome{}
		}
		if of[k] == nil {
			kinds = append(kinds, k)
		}
		of[k] = append(of[k], i)
	}
	return kinds, of
}

func (t *Table) settleUpdates(ctx context.Context, c *driver.Collection, outcomes []outbox.Outcome, some []int) (lost []int, err error) {
	if len(some) == 0 {
		return nil, nil
	}
	kinds, of := t.group(outcomes, some)
	models := make([]driver.WriteModel, 0, len(kinds))
	for _, k := range kinds {
		ids := idValues(idsOf(outcomes, of[k]))
		filter := append(bson.D{in(fieldID, ids)}, t.guard(k.fence)...)
		if len(ids) == 1 {
			// The driver repeats what touches one document by itself.
			models = append(models, driver.NewUpdateOneModel().SetFilter(filter).SetUpdate(t.change(&k)).SetHint(byID))
		} else {
			models = append(models, driver.NewUpdateManyModel().SetFilter(filter).SetUpdate(t.change(&k)).SetHint(byID))
		}
	}
	written, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	if err != nil || written.MatchedCount == int64(len(some)) {
		return nil, err
	}
	return t.sift(ctx, c, outcomes, some)
}

func idsOf(outcomes []outbox.Outcome, some []int) []string {
	ids := make([]string, len(some))
	for n, i := range some {
		ids[n] = outcomes[i].ID
	}
	return ids
}

// change is what a verdict writes. The token stays: it tells, when the call is repeated because
// its answer was lost, what it has written.
func (t *Table) change(k *alike) any {
	status := t.l.column(event.Status)
	switch k.verdict {
	case outbox.Failed:
		return bson.D{is("$set", bson.D{is(status, failed), is(fieldLastError, outbox.Printable(k.change.Error))})}
	case outbox.Retry:
		// An expression: a $ in the text of an error must not be taken for a field.
		return bson.A{op("$set", bson.D{
			is(status, pending), is(fieldProcessingAt, nil),
			is(fieldAttempts, op("$literal", int32(k.change.Attempts))),
			is(fieldLastError, op("$literal", outbox.Printable(k.change.Error))),
			is(t.l.column(event.AvailableAt), op("$add", bson.A{"$$NOW", k.change.Delay.Milliseconds()})),
		})}
	case outbox.Released:
		return bson.D{is("$set", bson.D{is(status, pending), is(fieldProcessingAt, nil)})}
	default:
		return t.publishing()
	}
}

// publishing is the update that makes a row a published one.
func (t *Table) publishing() bson.D {
	var d bson.D
	if t.l.states() {
		d = bson.D{is("$set", bson.D{is(t.l.column(event.Status), published), is(fieldLastError, nil)})}
	}
	if at := t.l.column(event.PublishedAt); at != "" {
		d = append(d, is("$currentDate", bson.D{is(at, true)}))
	}
	return d
}
