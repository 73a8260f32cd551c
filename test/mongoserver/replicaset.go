package mongoserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// initiate makes the nodes a replica set and waits until one of them takes writes.
func (s *Server) initiate(ctx context.Context) error {
	members := bson.A{}
	for i, n := range s.nodes {
		arbiter := s.opts.Arbiter && i == len(s.nodes)-1
		member := bson.D{{Key: "_id", Value: i}, {Key: "host", Value: n.address()}}
		if arbiter {
			member = append(member, bson.E{Key: "arbiterOnly", Value: true})
		}
		members = append(members, member)
	}
	config := bson.D{
		{Key: "_id", Value: setName},
		{Key: "members", Value: members},
		// A fifth of the defaults: a dead primary is replaced after some two seconds.
		{Key: "settings", Value: bson.D{{Key: "electionTimeoutMillis", Value: 2000}, {Key: "heartbeatIntervalMillis", Value: 500}}},
	}
	first := s.nodes[0]
	client, err := s.admin(first, true)
	if err != nil {
		return err
	}
	defer first.forget() // with authentication on, the next one logs in
	command := bson.D{{Key: "replSetInitiate", Value: config}}
	if err := client.Database("admin").RunCommand(ctx, command).Err(); err != nil {
		return fmt.Errorf("replSetInitiate: %w", err)
	}
	return poll(ctx, "a primary", func(ctx context.Context) (bool, error) {
		is, err := s.hello(ctx, first)
		return is.Primary, err
	})
}

// hello is what a node says about itself.
type hello struct {
	Primary    bool          `bson:"isWritablePrimary"`
	Secondary  bool          `bson:"secondary"`
	Arbiter    bool          `bson:"arbiterOnly"`
	ElectionID bson.ObjectID `bson:"electionId"`
}

func (s *Server) hello(ctx context.Context, n *node) (is hello, err error) {
	client, err := s.admin(n, false)
	if err != nil {
		return is, err
	}
	err = client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&is)
	return is, err
}

// primary asks all nodes that answer; of two that claim to be primary the one
// that was elected later is. It is -1 where none is.
func (s *Server) primary(ctx context.Context) int {
	found, elected := -1, bson.ObjectID{}
	for i, n := range s.nodes {
		if !n.answers() {
			continue
		}
		is, err := s.hello(ctx, n)
		if err == nil && is.Primary && (found < 0 || bytes.Compare(is.ElectionID[:], elected[:]) > 0) {
			found, elected = i, is.ElectionID
		}
	}
	return found
}

// awaitMembers waits until there is a primary and every other node that answers
// is a secondary or an arbiter.
func (s *Server) awaitMembers(ctx context.Context) error {
	if err := poll(ctx, "a primary", func(ctx context.Context) (bool, error) {
		return s.primary(ctx) >= 0, nil
	}); err != nil {
		return err
	}
	for _, n := range s.nodes {
		if !n.answers() {
			continue
		}
		if err := poll(ctx, fmt.Sprintf("node %d to have joined", n.id), func(ctx context.Context) (bool, error) {
			is, err := s.hello(ctx, n)
			return is.Primary || is.Secondary || is.Arbiter, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// poll asks until the answer is yes. An error counts as no, and is told when
// time is up.
func poll(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		yes, err := ask(once)
		cancel()
		if yes && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(context.Cause(ctx), err))
		case <-retry.C:
		}
	}
}
