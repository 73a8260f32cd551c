package mongostream

import (
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestAnEmptyDatabaseIsReportedAsNotInitialised(t *testing.T) {
	t.Parallel()
	h := claiming(newHouse(t, mongoserver.Shared(t)))
	findings := Check(ctx(t), h.opt)
	for _, setting := range []string{"collection", "bookkeeping walrelay_sources", "bookkeeping walrelay_parked", "bookkeeping walrelay_leases"} {
		if f := finding(t, findings, setting); f.Err == nil || f.Err.Anchor != AnchorNotInitialised || f.Remedy == "" {
			t.Errorf("%+v", f)
		}
	}
	if names, err := h.outbox.Database().ListCollectionNames(ctx(t), bson.D{}); err != nil || len(names) > 0 {
		t.Errorf("check has made %v (%v)", names, err)
	}
}

func TestMissingIndexesAreNamedWithWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	h := claiming(newHouse(t, mongoserver.Shared(t)))
	if err := h.outbox.Database().CreateCollection(ctx(t), h.opt.Collection); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range Check(ctx(t), h.opt) {
		if strings.HasPrefix(f.Setting, "index on") {
			if !f.OK || !f.Warning {
				t.Errorf("%+v", f)
			}
			text.WriteString(f.Is + ": " + f.Remedy + "\n")
		}
	}
	for _, named := range []string{
		"unique {outbox_route, event_id}", "{outbox_route, status, available_at, created_at}", "{outbox_route, status, processing_at}", "sparse {claim_token}",
		"{outbox_route, status, available_at, hlc, created_at, id}", `{status, available_at, hlc, created_at, id} where status is "pending"`,
		`{processing_at} where status is "processing"`, `{published_at, _id} where status is "published"`, "sorts all pending documents",
	} {
		if !strings.Contains(text.String(), named) {
			t.Errorf("%s is not named:\n%s", named, text.String())
		}
	}
}

func TestAnIndexThatExpiresUnpublishedDocumentsIsWarnedOf(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	for key, name := range map[string]string{"created_at": "dangerous", "published_at": "harmless"} {
		if _, err := h.outbox.Indexes().CreateOne(ctx(t), mongo.IndexModel{Keys: bson.D{{Key: key, Value: 1}}, Options: options.Index().SetName(name).SetExpireAfterSeconds(3600)}); err != nil {
			t.Fatal(err)
		}
	}
	findings := Check(ctx(t), h.opt)
	if f := finding(t, findings, "index dangerous"); !f.Warning || !strings.Contains(f.Is, "created_at after 1h0m0s") {
		t.Errorf("%+v", f)
	}
	for _, f := range findings {
		if f.Setting == "index harmless" {
			t.Errorf("%+v", f)
		}
	}
}

func TestAStandaloneServerIsRefusedForTheStreamAndTakenForPolling(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Standalone: true})
	h := claiming(newHouse(t, server))
	_, err := Apply(ctx(t), h.client, h.opt)
	var e *event.Error
	if !as(err, &e) || e.Anchor != AnchorStandalone || e.Fault != event.FaultPrecondition {
		t.Errorf("init: %v", err)
	}
	if f := finding(t, Check(ctx(t), h.opt), "replica set"); f.Err == nil || f.Err.Anchor != AnchorStandalone || !strings.Contains(f.Remedy, "capture: poll") {
		t.Errorf("check: %+v", f)
	}
	h.opt.Capture = CaptureAuto
	steps, err := Apply(ctx(t), h.client, h.opt)
	if err != nil || steps[len(steps)-1].Without == "" {
		t.Errorf("auto: %v, %+v", err, steps)
	}
	if f := finding(t, Check(ctx(t), h.opt), "replica set"); f.Err != nil || !f.Warning {
		t.Errorf("auto: %+v", f)
	}
	h.opt.Capture = CapturePoll
	if _, err := Apply(ctx(t), h.client, h.opt); err != nil {
		t.Errorf("poll: %v", err)
	}
	for _, f := range Check(ctx(t), h.opt) {
		if f.Err != nil {
			t.Errorf("poll: %+v", f)
		}
	}
}

// The rights that print shows are the least: with them init makes the position and check finds nothing missing,
// and each right that is taken away is named.
func TestRightsAreJudgedBeforeTheyAreMissed(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Auth: true})
	h := claiming(newHouse(t, server))
	h.opt.Ordered = true
	opt := h.opt
	opt.Capture = CapturePoll // everything but the position, as an administrator would from the script
	if _, err := Apply(ctx(t), h.client, opt); err != nil {
		t.Fatal(err)
	}
	if err := h.outbox.Database().CreateCollection(ctx(t), h.opt.SourcesCollection()); err != nil {
		t.Fatal(err)
	}
	list := func(without string) (privileges []mongoserver.Privilege) {
		add := func(database, collection string, actions ...string) {
			var kept []string
			for _, a := range actions {
				if a != without {
					kept = append(kept, a)
				}
			}
			privileges = append(privileges, mongoserver.Privilege{Database: database, Collection: collection, Actions: kept})
		}
		add(h.opt.Database, h.opt.Collection, append(h.opt.outboxActions(), "listIndexes")...)
		for _, book := range h.opt.books() {
			add(h.opt.Database, book, "find", "insert", "update", "remove", "listIndexes")
		}
		if without != "optional" {
			add("local", "oplog.rs", "find", "collStats")
			add(h.opt.Database, "", "listCollections")
			privileges = append(privileges, mongoserver.Privilege{Cluster: true, Actions: []string{"inprog"}})
		}
		return privileges
	}
	server.AddRole(t, "narrow", list("")...)
	server.AddUser(t, "relay", secret, mongoserver.Role{Name: "narrow", Database: "admin"})
	h.opt.URL = server.URLAs("relay", secret)
	client, err := Connect(ctx(t), h.opt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(ctx(t)) }()
	steps, err := Apply(ctx(t), client, h.opt)
	if err != nil {
		t.Fatalf("%v %+v", err, steps)
	}
	for _, f := range Check(ctx(t), h.opt) {
		if f.Err != nil || f.Warning {
			t.Errorf("with all rights: %+v", f)
		}
	}
	for _, right := range []string{"changeStream", "update", "remove", "find"} {
		server.SetRole(t, "narrow", list(right)...)
		f := finding(t, Check(ctx(t), h.opt), "rights on outbox")
		if f.Err == nil || f.Err.Anchor != AnchorRights || f.Is != "without "+right || !strings.Contains(f.Remedy, "grantPrivilegesToRole") {
			t.Errorf("without %s: %+v", right, f)
		}
	}
	server.SetRole(t, "narrow", list("optional")...)
	findings := Check(ctx(t), h.opt)
	for _, f := range findings {
		if f.Err != nil {
			t.Errorf("without what is optional: %+v", f)
		}
	}
	for _, setting := range []string{"oplog window", "open transactions"} {
		if f := finding(t, findings, setting); !f.Warning || !strings.Contains(f.Remedy, "grant") {
			t.Errorf("without what is optional: %+v", f)
		}
	}
	h.opt.URL = server.URLAs("relay", "wrong")
	if f := finding(t, Check(ctx(t), h.opt), "server"); f.Err == nil || f.Err.Anchor != AnchorCredentials || strings.Contains(f.Is+f.Remedy, secret) {
		t.Errorf("with a wrong password: %+v", f)
	}
	h.opt.URL = strings.Replace(server.URLAs("relay", secret), "relay:"+secret+"@", "", 1)
	if f := finding(t, Check(ctx(t), h.opt), "server"); f.Err == nil || f.Err.Anchor != AnchorRights && f.Err.Anchor != AnchorCredentials {
		t.Errorf("without a login: %+v", f)
	}
}

func TestAServerThatIsDownIsSaidWithItsHosts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.opt.URL, h.opt.WireTimeout = "mongodb://relay:"+secret+"@127.0.0.1:1/?serverSelectionTimeoutMS=500", 2*time.Second
	f := Check(ctx(t), h.opt)[0]
	if f.Err == nil || f.Err.Anchor != AnchorUnreachable || !strings.Contains(f.Is, "127.0.0.1:1") || strings.Contains(f.Is+f.Remedy, secret) {
		t.Errorf("%+v", f)
	}
}

func TestALostPositionIsFoundBeforeTheStart(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	if _, err := Apply(ctx(t), h.client, h.opt); err != nil {
		t.Fatal(err)
	}
	if _, err := h.opt.update(ctx(t), h.client, nil, bson.D{{Key: "replica_set", Value: "other"}}, false); err != nil {
		t.Fatal(err)
	}
	if f := finding(t, Check(ctx(t), h.opt), "position"); f.Err == nil || f.Err.Fault != event.FaultGap {
		t.Errorf("%+v", f)
	}
	claiming(h)
	if f := finding(t, Check(ctx(t), h.opt), "position"); f.Err != nil || !f.Warning || !strings.Contains(f.Remedy, "on_gap is catch_up") {
		t.Errorf("with on_gap: catch_up: %+v", f)
	}
}
