package mongoserver

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FailPoint switches a fail point of the node on, and off again with the test;
// with Options.TestCommands. The mode is "alwaysOn", "off", or a document such as
// {times: 2}; data says what it does, nil for nothing.
func (s *Server) FailPoint(t testing.TB, i int, name string, mode any, data bson.D) {
	t.Helper()
	command := bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: mode}}
	if data != nil {
		command = append(command, bson.E{Key: "data", Value: data})
	}
	if err := s.nodeCommand(i, command); err != nil {
		t.Fatalf("set the fail point %s of node %d: %v", name, i, err)
	}
	t.Cleanup(func() {
		if s.nodes[i].answers() {
			_ = s.nodeCommand(i, bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: "off"}})
		}
	})
}

func (s *Server) nodeCommand(i int, command bson.D) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := s.admin(s.nodes[i], false)
	if err != nil {
		return err
	}
	return client.Database("admin").RunCommand(ctx, command).Err()
}
