package saga

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
	stagepg "github.com/walrelay/walrelay/stage/postgres"
	"github.com/walrelay/walrelay/test/oracle"
)

// stepWithin bounds one transaction with all its attempts.
const stepWithin = 60 * time.Second

// errRolledBack ends a transaction on purpose.
var errRolledBack = errors.New("rolled back")

// flow is one chain of steps. Nobody else writes under its keys, so that their order is
// that of its steps.
type flow struct {
	saga   *Saga
	number int
	keys   []*key
	rnd    *rand.Rand
	last   hlc.Stamp // of the step before
}

// key is one ordering key.
type key struct {
	name    string
	next    int64
	inMongo bool // its last event is
}

// planned is an event before its transaction: an attempt that is sent back stages the
// same again, with new ids and stamps.
type planned struct {
	key *key
	seq int64
}

func (f *flow) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	o := f.saga.o
	var plan []planned
	for range 1 + f.rnd.IntN(o.MaxEvents) {
		k := f.keys[f.rnd.IntN(len(f.keys))]
		k.next++
		plan = append(plan, planned{k, k.next})
	}
	inMongo, rollback := f.rnd.Float64() < o.MongoShare, f.rnd.Float64() < o.RollbackShare
	write := f.inPostgres
	if inMongo {
		write = f.inMongo
	}
	staged, err := write(ctx, plan, rollback)
	if rollback && errors.Is(err, errRolledBack) {
		f.saga.count(func(s *Stats) { s.RolledBack++ })
		return nil
	}
	if err != nil {
		return err
	}
	f.note(plan, staged, inMongo)
	return nil
}

func (f *flow) note(plan []planned, staged []stage.Staged, inMongo bool) {
	s := f.saga
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range plan {
		s.committed = append(s.committed, oracle.Commit{EventID: staged[i].ID.String(), Route: s.o.Route, Key: p.key.name, Seq: p.seq})
		f.last = staged[i].Stamp
		if p.seq > 1 && p.key.inMongo != inMongo {
			s.stats.Turns++
		}
		p.key.inMongo = inMongo
	}
	if inMongo {
		s.stats.Mongo++
	} else {
		s.stats.Postgres++
	}
}

func (f *flow) inPostgres(ctx context.Context, plan []planned, rollback bool) (staged []stage.Staged, err error) {
	out := f.saga.postgres
	err = pgx.BeginFunc(ctx, f.saga.o.Postgres, func(tx pgx.Tx) error {
		b := out.Buffer()
		if staged, err = f.stage(ctx, out.Clock(), b, plan); err != nil {
			return err
		}
		if _, err := out.Flush(ctx, stagepg.Pgx(tx), b); err != nil || !rollback {
			return err
		}
		return errRolledBack
	})
	return staged, err
}

func (f *flow) inMongo(ctx context.Context, plan []planned, rollback bool) (staged []stage.Staged, err error) {
	out, attempts := f.saga.mongo, 0
	err = f.saga.o.Mongo.Client().UseSession(ctx, func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			attempts++
			// The business change comes first: with it the server knows of the transaction, before
			// anything is stamped.
			_, err := f.saga.o.Mongo.Collection("steps").UpdateOne(ctx, bson.D{{Key: "_id", Value: f.keys[0].name}},
				bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}, options.UpdateOne().SetUpsert(true))
			if err != nil {
				return nil, err
			}
			b := out.Buffer()
			if staged, err = f.stage(ctx, out.Clock(), b, plan); err != nil {
				return nil, err
			}
			if _, err := out.Flush(ctx, b); err != nil || !rollback {
				return nil, err
			}
			return nil, errRolledBack
		})
		return err
	})
	f.saga.count(func(s *Stats) { s.Conflicts += attempts - 1 })
	return staged, err
}

// stage begins with what a consumer of the step before would have begun with.
func (f *flow) stage(ctx context.Context, clock *hlc.Clock, b *stage.Buffer, plan []planned) (all []stage.Staged, err error) {
	if f.saga.o.TwoClocks && !f.saga.o.Deaf && f.last != 0 {
		if _, err := clock.Observe(f.last); err != nil {
			return nil, fmt.Errorf("stamp of the step before: %w", err)
		}
	}
	for _, p := range plan {
		s, err := b.Stage(ctx, stage.Event{
			Route: f.saga.o.Route, Type: "Made", Key: p.key.name,
			Payload: map[string]any{"key": p.key.name, "seq": p.seq, "flow": f.number},
		})
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
