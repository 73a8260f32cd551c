package mongo

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Pending takes a snapshot of rows that are pending and due, and then reads the end of the oplog.
//
// In this order, and in one session: the cluster's time was moved on before a row that the first command
// saw could be seen, and the primary's answer to the second says no earlier one.
func (t *Table) Pending(ctx context.Context, req outbox.Request) (ids []string, at event.Position, err error) {
	req.Limit = max(1, req.Limit)
	req.Only, req.Except = nil, nil
	err = t.with(ctx, "looking for pending rows of", func(ctx context.Context, c *driver.Collection) error {
		session, err := c.Database().Client().StartSession(options.Session().SetCausalConsistency(false))
		if err != nil {
			return err
		}
		defer session.EndSession(context.WithoutCancel(ctx))
		ctx = driver.NewSessionContext(ctx, session)
		if !nothing(req.Shards) {
			rows, err := t.l.find(ctx, c, t.l.stretches(&req), req.Limit, t.l.fields())
			if err != nil {
				return err
			}
			for i := range rows {
				id, err := idText(rows[i].doc)
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
		}
		if err := c.Database().RunCommand(ctx, bson.D{is("ping", 1)}, options.RunCmd().SetReadPreference(readpref.Primary())).Err(); err != nil {
			return err
		}
		at, err = endOf(session)
		return err
	})
	return ids, at, err
}

// endOf is a position that everything comes before which had happened when the session's last
// command was answered.
func endOf(s *driver.Session) (event.Position, error) {
	end := s.OperationTime()
	if end == nil {
		return event.Position{}, fmt.Errorf("the server's answer has no operationTime: it belongs to no replica set")
	}
	last := *end
	// Ahead of the operation time only as long as a write is on its way, as a rule.
	if t, i, ok := s.ClusterTime().Lookup("$clusterTime", "clusterTime").TimestampOK(); ok && (t > last.T || t == last.T && i > last.I) {
		last = bson.Timestamp{T: t, I: i}
	}
	return tokenAfter(last), nil
}

// tokenAfter is what the tokens of everything at or before a moment are below: a resume token begins with
// 82 and the moment (the KeyString of a timestamp), and tokens compare bytewise.
func tokenAfter(m bson.Timestamp) event.Position {
	return event.AtToken(fmt.Sprintf("82%08X%08X", m.T, m.I+1))
}
