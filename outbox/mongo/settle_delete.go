package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/outbox"
)

// settleDeletions deletes published rows. Since of a row that is gone nobody can tell who deleted
// it, those that are ours are looked for first; whichever of them the deletion then misses was taken
// from us in between, and is there still.
func (t *Table) settleDeletions(ctx context.Context, c *driver.Collection, outcomes []outbox.Outcome, some []int) (lost []int, err error) {
	byFence := map[outbox.Fence][]int{}
	for _, i := range some {
		byFence[outcomes[i].Fence] = append(byFence[outcomes[i].Fence], i)
	}
	for fence, of := range byFence {
		gone, err := t.deleteClaimed(ctx, c, fence, outcomes, of)
		if err != nil {
			return nil, err
		}
		lost = append(lost, gone...)
	}
	return lost, nil
}

func (t *Table) deleteClaimed(ctx context.Context, c *driver.Collection, fence outbox.Fence, outcomes []outbox.Outcome, of []int) (lost []int, err error) {
	ours, values, err := t.listed(ctx, c, append(bson.D{in(fieldID, idValues(idsOf(outcomes, of)))}, t.guard(fence)...), len(of))
	if err != nil {
		return nil, err
	}
	if len(values) > 0 {
		done, err := c.DeleteMany(ctx, append(bson.D{in(fieldID, values)}, t.guard(fence)...), options.DeleteMany().SetHint(byID))
		if err != nil {
			return nil, err
		}
		if done.DeletedCount < int64(len(values)) {
			left, _, err := t.listed(ctx, c, bson.D{in(fieldID, values)}, len(values))
			if err != nil {
				return nil, err
			}
			for id := range left {
				delete(ours, id)
			}
		}
	}
	for _, i := range of {
		if !ours[outcomes[i].ID] {
			lost = append(lost, i)
		}
		delete(ours, outcomes[i].ID)
	}
	return lost, nil
}

// listed are the ids of the documents that match, as texts and as values.
func (t *Table) listed(ctx context.Context, c *driver.Collection, filter bson.D, most int) (ids map[string]bool, values bson.A, err error) {
	ids, values = make(map[string]bool, most), make(bson.A, 0, most)
	cursor, err := c.Find(ctx, filter, options.Find().SetHint(byID).SetProjection(bson.D{is(fieldID, 1)}).SetBatchSize(inOneAnswer(most)))
	if err != nil {
		return nil, nil, err
	}
	err = each(ctx, cursor, func(doc bson.Raw) error {
		id, err := idText(doc)
		ids[id] = true
		values = append(values, doc.Lookup(fieldID))
		return err
	})
	return ids, values, err
}
