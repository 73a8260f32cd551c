package mongoload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// entry is a committed transaction in the ledger.
type entry struct {
	ID     string    `bson:"_id"`
	Load   string    `bson:"load"`
	Events []written `bson:"events"`
}

// written is one event.
type written struct {
	ID  string `bson:"id"`
	Key string `bson:"key"`
	Seq int64  `bson:"seq"`
}

// value is the event's payload as it has to arrive.
func (w written) value() string { return fmt.Sprintf(`{"seq":%d,"key":%q}`, w.Seq, w.Key) }

// plan is what a transaction is going to do; the same at every attempt.
type plan struct {
	keys             []int // ascending
	of               []int // which of the keys each event has
	rollBack, remove bool
	single           bool
}

func (l *Load) plan(rnd *rand.Rand) plan {
	total := 1 + rnd.IntN(l.opts.MaxRows)
	p := plan{
		keys:     rnd.Perm(l.opts.Keys)[:1+rnd.IntN(min(total, 4, l.opts.Keys))],
		rollBack: rnd.Float64() < l.opts.RollbackShare,
		remove:   rnd.Float64() < l.opts.DeleteShare,
		single:   rnd.Float64() < l.opts.SingleShare,
	}
	slices.Sort(p.keys)
	for range total {
		p.of = append(p.of, p.keys[rnd.IntN(len(p.keys))])
	}
	return p
}

// transaction writes one plan, as often as elections make that necessary, and ends
// when its outcome is known.
func (l *Load) transaction(ctx context.Context, rnd *rand.Rand) error {
	p := l.plan(rnd)
	for _, k := range p.keys {
		l.locks[k].Lock()
		defer l.locks[k].Unlock()
	}
	mark := uuid.NewString()
	attempts := 0
	err := l.outbox.Database().Client().UseSession(ctx, func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			attempts++
			return nil, l.write(ctx, p, mark)
		})
		return err
	})
	switch {
	case errors.Is(err, errRollback):
		l.count(func(s *Stats) { s.RolledBack++; s.Retried += attempts - 1 })
		return nil
	case err != nil:
		return err
	}
	l.count(func(s *Stats) { s.Transactions++; s.Retried += attempts - 1 })
	return nil
}

func (l *Load) write(ctx context.Context, p plan, mark string) error {
	next := map[int]int64{}
	for _, k := range p.keys {
		n := int64(0)
		for _, of := range p.of {
			if of == k {
				n++
			}
		}
		var doc struct {
			Last int64 `bson:"last"`
		}
		err := l.keys.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: l.key(k)}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "last", Value: n}}}},
			options.FindOneAndUpdate().SetReturnDocument(options.Before)).Decode(&doc)
		if err != nil {
			return err
		}
		next[k] = doc.Last
	}
	e := entry{ID: mark, Load: l.name}
	var documents []bson.D
	var ids bson.A
	for _, k := range p.of {
		next[k]++
		w := written{ID: uuid.NewString(), Key: l.key(k), Seq: next[k]}
		e.Events = append(e.Events, w)
		documents = append(documents, l.document(w))
		ids = append(ids, w.ID)
	}
	if err := l.insert(ctx, documents, p.single); err != nil {
		return err
	}
	if _, err := l.ledger.InsertOne(ctx, e); err != nil {
		return err
	}
	if p.rollBack {
		return errRollback
	}
	if p.remove {
		_, err := l.outbox.DeleteMany(ctx, bson.D{{Key: "id", Value: bson.D{{Key: "$in", Value: ids}}}})
		return err
	}
	return nil
}

func (l *Load) insert(ctx context.Context, documents []bson.D, single bool) error {
	if !single {
		_, err := l.outbox.InsertMany(ctx, documents)
		return err
	}
	for _, d := range documents {
		if _, err := l.outbox.InsertOne(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// document is a pending event of the forze contract.
func (l *Load) document(w written) bson.D {
	now := time.Now().UTC()
	return bson.D{
		{Key: "id", Value: w.ID},
		{Key: "event_id", Value: w.ID},
		{Key: "outbox_route", Value: l.opts.Route},
		{Key: "event_type", Value: "made"},
		{Key: "status", Value: "pending"},
		{Key: "attempts", Value: int32(0)},
		{Key: "occurred_at", Value: now},
		{Key: "created_at", Value: now},
		{Key: "available_at", Value: nil},
		{Key: "ordering_key", Value: w.Key},
		{Key: "payload", Value: bson.D{{Key: "seq", Value: w.Seq}, {Key: "key", Value: w.Key}}},
	}
}
