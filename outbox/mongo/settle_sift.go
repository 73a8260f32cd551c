package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// sift finds out which outcomes were lost: those whose row has not come out as they say.
func (t *Table) sift(ctx context.Context, c *driver.Collection, outcomes []outbox.Outcome, some []int) (lost []int, err error) {
	is := map[string]bson.Raw{}
	cursor, err := c.Find(ctx, bson.D{in(fieldID, idValues(idsOf(outcomes, some)))},
		options.Find().SetHint(byID).SetProjection(t.stateFields()).SetBatchSize(inOneAnswer(len(some))))
	if err != nil {
		return nil, err
	}
	err = each(ctx, cursor, func(doc bson.Raw) error {
		id, err := idText(doc)
		is[id] = doc
		return err
	})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, i := range some {
		o := &outcomes[i]
		if doc := is[o.ID]; doc == nil || seen[o.ID] || !t.cameOut(doc, o) {
			lost = append(lost, i)
		}
		seen[o.ID] = true
	}
	return lost, nil
}

func (t *Table) stateFields() bson.D {
	d := bson.D{is(fieldID, 1)}
	for _, name := range []string{t.l.column(event.Status), t.l.column(event.PublishedAt), fieldClaimToken} {
		if name != "" {
			d = append(d, is(name, 1))
		}
	}
	return d
}

// cameOut says whether a row is as the outcome would have it. Under a lease there is no token:
// that somebody else wrote the same cannot be told apart, and comes to the same.
func (t *Table) cameOut(doc bson.Raw, o *outbox.Outcome) bool {
	if !t.l.states() {
		return !isNull(new(doc.Lookup(t.l.column(event.PublishedAt))))
	}
	if t.claimsRows() {
		if token, _ := doc.Lookup(fieldClaimToken).StringValueOK(); token != tokenOf(o.Fence) {
			return false
		}
	}
	state, _ := doc.Lookup(t.l.column(event.Status)).StringValueOK()
	return state == map[outbox.Verdict]string{
		outbox.Published: published, outbox.Failed: failed, outbox.Retry: pending, outbox.Released: pending,
	}[o.Verdict]
}
