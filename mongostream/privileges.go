package mongostream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// privileges are what the user of the connection may do, as the server itself lists it; nobody needs
// a right to ask for their own.
type privileges struct {
	// user is empty where nobody is logged in: then either the server asks nobody to, or
	// everything will be refused.
	user string
	list []privilege
}

type privilege struct {
	Resource struct {
		DB         *string `bson:"db"`
		Collection *string `bson:"collection"`
		Cluster    bool    `bson:"cluster"`
		Any        bool    `bson:"anyResource"`
	} `bson:"resource"`
	Actions []string `bson:"actions"`
}

func readPrivileges(ctx context.Context, client *mongo.Client) (p privileges, err error) {
	var status struct {
		Auth struct {
			Users []struct {
				User string `bson:"user"`
			} `bson:"authenticatedUsers"`
			Privileges []privilege `bson:"authenticatedUserPrivileges"`
		} `bson:"authInfo"`
	}
	err = client.Database("admin").RunCommand(ctx, bson.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}}).Decode(&status)
	if err != nil {
		return p, Classify(err, "asking for the user's rights")
	}
	for _, u := range status.Auth.Users {
		p.user = u.User
	}
	p.list = status.Auth.Privileges
	return p, nil
}

// on reports whether the action is allowed on the collection; an empty one stands for the database.
func (p *privileges) on(database, collection, action string) bool {
	return p.user == "" || slices.ContainsFunc(p.list, func(v privilege) bool {
		r := v.Resource
		// An empty name stands for all of them, but for the server's own collections.
		covers := r.DB != nil && (*r.DB == database || *r.DB == "") && r.Collection != nil && (*r.Collection == collection || *r.Collection == "")
		return (r.Any || covers) && slices.Contains(v.Actions, action)
	})
}

// nameRight says which right is missing, and on what: the server often names neither, least of all when
// a right is taken away from an open stream.
func (s *Stream) nameRight(ctx context.Context, err error) error {
	var e *event.Error
	if !errors.As(err, &e) || e.Anchor != AnchorRights {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.WireTimeout)
	defer cancel()
	client, cerr := s.connect(ctx)
	if cerr != nil {
		return err
	}
	p, perr := readPrivileges(ctx, client)
	if perr != nil {
		return err
	}
	for i, collection := range append([]string{s.opt.Collection}, s.opt.books()...) {
		actions := s.opt.bookActions()
		if i == 0 {
			actions = s.opt.outboxActions()
		}
		if lack := p.lacking(s.opt.Database, collection, actions); len(lack) > 0 {
			named := precondition(AnchorRights, fmt.Sprintf("user %s has no right to %s on %s.%s", p.user, strings.Join(lack, ", "), s.opt.Database, collection),
				remedyGrant(s.opt.Database, collection, lack))
			named.Cause = e.Cause
			return named
		}
	}
	return err
}

// lacking are the actions of the list that are not allowed on the collection.
func (p *privileges) lacking(database, collection string, actions []string) (missing []string) {
	for _, a := range actions {
		if !p.on(database, collection, a) {
			missing = append(missing, a)
		}
	}
	return missing
}

// outboxActions are what the relay does to the outbox collection.
func (o *Options) outboxActions() []string {
	actions := []string{"find"}
	if !o.polls() {
		actions = append(actions, "changeStream")
	}
	if o.writesRows() {
		actions = append(actions, "update")
	}
	if o.WriteBack == DeleteRows || o.Retains {
		actions = append(actions, "remove")
	}
	if o.claims() {
		actions = append(actions, "listIndexes") // claims say which one they mean
	}
	return actions
}

// bookActions are what it does to its own.
func (o *Options) bookActions() []string { return []string{"find", "insert", "update", "remove"} }

// books are walrelay's own collections.
func (o *Options) books() []string {
	if !o.keepsBooks() {
		return nil
	}
	names := []string{o.ParkedCollection(), o.LeasesCollection()}
	if o.writesRecord() {
		names = append(names, o.SourcesCollection())
	}
	return names
}
