package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Reclaim gives stale claims back. The rows get a due time, now: so that rows that
// were tried are found in the index by having one.
func (t *Table) Reclaim(ctx context.Context, req outbox.Reclaim) (count int, err error) {
	if !t.claimsRows() || nothing(req.Shards) {
		return 0, nil
	}
	var stale bson.A
	if req.OlderThan > 0 {
		stale = append(stale, op("$expr", op("$lt", bson.A{"$" + fieldProcessingAt, op("$subtract", bson.A{"$$NOW", req.OlderThan.Milliseconds()})})))
	}
	for _, tenure := range req.Tenures {
		during, err := t.l.during(tenure, req.Shards)
		if err != nil {
			return 0, err
		}
		stale = append(stale, during)
	}
	if len(stale) == 0 {
		return 0, nil
	}
	limit := req.Limit
	if limit <= 0 {
		limit = 10_000
	}
	conditions := append(t.l.wanted(&outbox.Request{Shards: req.Shards, Except: req.Except}), op("$or", stale))
	// Null is older than any date, and no time of a claim.
	filter := and(bson.D{is(t.l.column(event.Status), processing), is(fieldProcessingAt, op("$type", "date"))}, conditions)
	err = t.with(ctx, "reclaiming rows of", func(ctx context.Context, c *driver.Collection) error {
		o := options.Find().SetLimit(int64(limit)).SetBatchSize(inOneAnswer(limit)).SetProjection(bson.D{is(fieldID, 1), is(fieldProcessingAt, 1), is(fieldClaimToken, 1)})
		if hint := t.l.hint(processing, fieldProcessingAt); hint != nil {
			o.SetHint(hint)
		}
		cursor, err := c.Find(ctx, filter, o)
		if err != nil {
			return err
		}
		var claims []held
		err = each(ctx, cursor, func(doc bson.Raw) error {
			claims = append(claims, held{doc.Lookup(fieldID), doc.Lookup(fieldClaimToken), doc.Lookup(fieldProcessingAt)})
			return nil
		})
		if err == nil {
			count, err = t.giveBack(ctx, c, claims)
		}
		return err
	})
	return count, err
}

// held is a row that somebody claimed, as it was when it was looked at.
type held struct{ id, token, at bson.RawValue }

// during is the condition of a claim that was made within a tenure.
func (l *layout) during(tenure outbox.Tenure, shards outbox.Shards) (bson.D, error) {
	from, _, err := parseMoment(tenure.From)
	if err != nil {
		return nil, err
	}
	until, endless, err := parseMoment(tenure.Until)
	if err != nil {
		return nil, err
	}
	at := op("$gte", from)
	if !endless {
		at = append(at, is("$lte", until))
	}
	d := bson.D{is(fieldProcessingAt, at)}
	if shards.Of > 0 {
		if one := l.inShards(outbox.Shards{Of: shards.Of, Own: []int{tenure.Shard}}); one != nil {
			d = append(d, one...)
		}
	}
	return d, nil
}

// giveBack writes one statement for the rows of each claim. The claim may have been renewed or settled since: its
// token and time are compared again.
func (t *Table) giveBack(ctx context.Context, c *driver.Collection, claims []held) (int, error) {
	type claim struct{ token, at string }
	ids := map[claim]bson.A{}
	one := map[claim]held{}
	for _, h := range claims {
		k := claim{h.token.String(), h.at.String()}
		ids[k] = append(ids[k], h.id)
		one[k] = h
	}
	if len(ids) == 0 {
		return 0, nil
	}
	change := bson.A{
		op("$set", bson.D{
			is(t.l.column(event.Status), pending), is(fieldProcessingAt, nil), is(t.l.column(event.AvailableAt), "$$NOW"),
			// What is no number counts as none: a row must not be stuck for it.
			is(fieldAttempts, op("$add", bson.A{op("$convert", bson.D{is("input", "$"+fieldAttempts), is("to", "int"), is("onError", 0), is("onNull", 0)}), 1})),
		}),
		op("$unset", fieldClaimToken),
	}
	models := make([]driver.WriteModel, 0, len(ids))
	for k, of := range ids {
		guard := bson.D{in(fieldID, of), is(t.l.column(event.Status), processing), is(fieldProcessingAt, one[k].at), is(fieldClaimToken, nil)}
		if token := one[k].token; !isNull(&token) {
			guard[3].Value = token
		}
		models = append(models, driver.NewUpdateManyModel().SetFilter(guard).SetUpdate(change).SetHint(byID))
	}
	r, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	if err != nil {
		return 0, err
	}
	return int(r.ModifiedCount), nil
}
