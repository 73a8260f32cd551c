package mongoserver

import (
	"context"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Role is a role in a database, for instance {"read", "shop"}.
type Role struct {
	Name     string `bson:"role"`
	Database string `bson:"db"`
}

// Privilege allows actions on a collection, for instance "find" and
// "changeStream". An empty Collection is all of the Database, an empty Database
// all of them. Cluster means the cluster instead.
type Privilege struct {
	Database, Collection string
	Cluster              bool
	Actions              []string
}

// AddUser makes a user, with Options.Auth; see URLAs. All users are kept in the
// database admin.
func (s *Server) AddUser(t testing.TB, user, password string, roles ...Role) {
	t.Helper()
	s.adminCommand(t, bson.D{
		{Key: "createUser", Value: user},
		{Key: "pwd", Value: password},
		{Key: "roles", Value: append([]Role{}, roles...)},
	})
}

// AddRole makes a role of exactly these privileges, to be given to AddUser as
// Role{name, "admin"}.
func (s *Server) AddRole(t testing.TB, name string, privileges ...Privilege) {
	t.Helper()
	s.adminCommand(t, bson.D{
		{Key: "createRole", Value: name},
		{Key: "privileges", Value: documents(privileges)},
		{Key: "roles", Value: bson.A{}},
	})
}

// SetRole replaces a role's privileges, also under sessions that are open.
func (s *Server) SetRole(t testing.TB, name string, privileges ...Privilege) {
	t.Helper()
	s.adminCommand(t, bson.D{{Key: "updateRole", Value: name}, {Key: "privileges", Value: documents(privileges)}})
}

// DropUser removes a user, also under sessions that are open.
func (s *Server) DropUser(t testing.TB, user string) {
	t.Helper()
	s.adminCommand(t, bson.D{{Key: "dropUser", Value: user}})
}

func documents(privileges []Privilege) bson.A {
	list := bson.A{}
	for _, p := range privileges {
		resource := bson.D{{Key: "db", Value: p.Database}, {Key: "collection", Value: p.Collection}}
		if p.Cluster {
			resource = bson.D{{Key: "cluster", Value: true}}
		}
		list = append(list, bson.D{{Key: "resource", Value: resource}, {Key: "actions", Value: p.Actions}})
	}
	return list
}

func (s *Server) adminCommand(t testing.TB, command bson.D) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	if err := s.Client(t).Database("admin").RunCommand(ctx, command).Err(); err != nil {
		t.Fatalf("%s: %v", command[0].Key, err)
	}
}

// addRoot makes the first user, which the server lets a stranger from its own
// machine do, and only once.
func (s *Server) addRoot(ctx context.Context) error {
	first := s.nodes[0]
	client, err := s.admin(first, true)
	if err != nil {
		return err
	}
	defer first.forget()
	if err := client.Database("admin").RunCommand(ctx, bson.D{
		{Key: "createUser", Value: root},
		{Key: "pwd", Value: s.password},
		{Key: "roles", Value: bson.A{Role{Name: "root", Database: "admin"}}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
	}).Err(); err != nil {
		return fmt.Errorf("make the user %s: %w", root, err)
	}
	return nil
}
