package mongoserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func TestMain(m *testing.M) { Main(m) }

// insert writes {_id: id} to the collection kept, acknowledged by the majority.
func insert(t *testing.T, client *mongo.Client, database string, id int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyWithin)
	defer cancel()
	kept := client.Database(database).Collection("kept", options.Collection().SetWriteConcern(writeconcern.Majority()))
	if _, err := kept.InsertOne(ctx, bson.D{{Key: "_id", Value: id}}); err != nil {
		t.Fatalf("insert %d: %v", id, err)
	}
}

func count(t *testing.T, client *mongo.Client, database string) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyWithin)
	defer cancel()
	n, err := client.Database(database).Collection("kept").CountDocuments(ctx, bson.D{})
	if err != nil {
		t.Fatalf("count: %v", err)
	}
	return n
}

// code is the server's error code, 0 for none.
func code(err error) int {
	var server mongo.ServerError
	if errors.As(err, &server) && len(server.ErrorCodes()) > 0 {
		return server.ErrorCodes()[0]
	}
	return 0
}

func TestSharedSetStreamsChangesAndTransactions(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	client, database := s.Client(t), s.NewDatabase(t)
	stream, err := client.Database(database).Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close(context.Background()) }()
	insert(t, client, database, 0)
	err = client.UseSession(t.Context(), func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) {
			return client.Database(database).Collection("kept").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
		})
		return err
	})
	if err != nil {
		t.Fatalf("transaction: %v", err)
	}
	for want := range int32(2) {
		if !stream.Next(t.Context()) {
			t.Fatalf("stream ended: %v", stream.Err())
		}
		if got := stream.Current.Lookup("documentKey", "_id").Int32(); got != want {
			t.Errorf("event of document %d, want %d", got, want)
		}
		if _, err := stream.Current.LookupErr("txnNumber"); (err == nil) != (want == 1) {
			t.Errorf("event %d has a transaction: %t", want, err == nil)
		}
	}
}

func TestSharedDatabasesAreApart(t *testing.T) {
	t.Parallel()
	s := Shared(t)
	client := s.Client(t)
	a, b := s.NewDatabase(t), s.NewDatabase(t)
	insert(t, client, a, 1)
	if n := count(t, client, b); n != 0 {
		t.Errorf("%d documents in the other database", n)
	}
}

func TestAcknowledgedWritesSurviveEveryWayDown(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	client := s.Client(t)
	ways := []struct {
		name string
		down func()
	}{
		{"stop", func() { s.Stop(t); s.StartAgain(t) }},
		{"kill", func() { s.Kill(t); s.StartAgain(t) }},
		{"step down", func() { s.StepDown(t) }},
	}
	port := s.Port(0)
	for i, way := range ways {
		insert(t, client, "db", i)
		way.down()
		if n := count(t, client, "db"); n != int64(i+1) {
			t.Fatalf("after %s there are %d documents, want %d", way.name, n, i+1)
		}
	}
	if s.Port(0) != port {
		t.Errorf("port moved from %d to %d", port, s.Port(0))
	}
}

func TestThreeNodesReplaceAPrimaryThatGoesOrHangs(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Nodes: 3})
	client := s.Client(t, options.Client().SetConnectTimeout(2*time.Second).SetHeartbeatInterval(time.Second))
	first := s.Primary(t)
	insert(t, client, "db", 0)
	if second := s.StepDown(t); second == first {
		t.Errorf("node %d is primary again after stepping down", first)
	}
	insert(t, client, "db", 1)
	killed := s.Primary(t)
	s.Kill(t, killed)
	if next := s.Primary(t); next == killed {
		t.Errorf("node %d is primary though it was killed", killed)
	}
	insert(t, client, "db", 2)
	s.StartAgain(t, killed)
	frozen := s.Primary(t)
	s.Pause(t, frozen)
	next := s.Primary(t)
	if next == frozen {
		t.Errorf("node %d is primary though it is frozen", frozen)
	}
	s.Continue(t, frozen)
	if now := s.Primary(t); now != next {
		t.Errorf("primary is %d, want %d, elected while %d was frozen", now, next, frozen)
	}
	if n := count(t, s.Client(t), "db"); n != 3 {
		t.Errorf("%d documents, want the 3 that were acknowledged", n)
	}
}

func TestPausedServerIsSilentUntilContinued(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	client := s.Client(t)
	insert(t, client, "db", 0)
	s.Pause(t)
	answered := make(chan error, 1)
	go func() {
		_, err := client.Database("db").Collection("kept").InsertOne(context.Background(), bson.D{{Key: "_id", Value: 1}})
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a frozen server answered: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	s.Continue(t)
	if err := <-answered; err != nil {
		t.Errorf("after Continue: %v", err)
	}
}

func TestEndOfAFrozenSetLeavesNoProcess(t *testing.T) {
	t.Parallel()
	s, err := start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Pause(t)
	p := s.nodes[0].running()
	s.close()
	if p.Running() {
		t.Errorf("process %d is left", p.PID())
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("folder is left: %v", err)
	}
}

func TestOutrunOplogLosesEveryEarlierPosition(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{OplogMB: 10})
	client := s.Client(t)
	stream, err := client.Database("db").Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	insert(t, client, "db", 0)
	if !stream.Next(t.Context()) {
		t.Fatal(stream.Err())
	}
	token := stream.ResumeToken()
	_ = stream.Close(t.Context())
	s.OutrunOplog(t)
	const lost = 286 // ChangeStreamHistoryLost
	if _, err := client.Database("db").Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetStartAfter(token)); code(err) != lost {
		t.Errorf("resumed with %v, want code %d", err, lost)
	}
}

func TestAUserMayDoOnlyWhatItsRoleAllows(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Auth: true})
	s.AddRole(t, "reader", Privilege{Database: "db", Collection: "kept", Actions: []string{"find"}})
	s.AddUser(t, "clerk", "p@ss/word", Role{"reader", "admin"})
	insert(t, s.Client(t), "db", 0)
	clerk := connectFor(t, s.URLAs("clerk", "p@ss/word"))
	if n := count(t, clerk, "db"); n != 1 {
		t.Errorf("the reader sees %d documents, want 1", n)
	}
	const unauthorized, authenticationFailed = 13, 18
	_, err := clerk.Database("db").Collection("kept").InsertOne(t.Context(), bson.D{})
	if code(err) != unauthorized {
		t.Errorf("the reader wrote: %v", err)
	}
	s.SetRole(t, "reader")
	if err := clerk.Database("db").Collection("kept").FindOne(t.Context(), bson.D{}).Err(); code(err) != unauthorized {
		t.Errorf("the reader read without a privilege: %v", err)
	}
	err = connectFor(t, s.URLAs("clerk", "wrong")).Ping(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "AuthenticationFailed") {
		t.Errorf("with a wrong password: %v, want code %d", err, authenticationFailed)
	}
}

func TestStandaloneServerHasNoChangeStream(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Standalone: true})
	client := s.Client(t)
	insert(t, client, "db", 0)
	const notReplicated = 40573
	if _, err := client.Database("db").Watch(t.Context(), mongo.Pipeline{}); code(err) != notReplicated {
		t.Errorf("watch on a standalone server: %v, want code %d", err, notReplicated)
	}
}

func TestParametersAndFailPointsReachTheServer(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{TestCommands: true, Params: map[string]string{"periodicNoopIntervalSecs": "1"}})
	client := s.Client(t)
	var got struct {
		Seconds int `bson:"periodicNoopIntervalSecs"`
	}
	ask := bson.D{{Key: "getParameter", Value: 1}, {Key: "periodicNoopIntervalSecs", Value: 1}}
	if err := client.Database("admin").RunCommand(t.Context(), ask).Decode(&got); err != nil || got.Seconds != 1 {
		t.Errorf("periodicNoopIntervalSecs is %d, %v", got.Seconds, err)
	}
	s.FailPoint(t, 0, "failCommand", bson.D{{Key: "times", Value: 1}},
		bson.D{{Key: "failCommands", Value: bson.A{"count"}}, {Key: "errorCode", Value: 2}})
	count := bson.D{{Key: "count", Value: "kept"}}
	if err := client.Database("db").RunCommand(t.Context(), count).Err(); code(err) != 2 {
		t.Errorf("with the fail point on: %v", err)
	}
	if err := client.Database("db").RunCommand(t.Context(), count).Err(); err != nil {
		t.Errorf("with the fail point spent: %v", err)
	}
}

func TestTLSIsAskedOfEveryClient(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{TLS: true})
	insert(t, s.Client(t), "db", 0)
	plain, _, _ := strings.Cut(s.URL(), "&tls")
	client, err := mongo.Connect(options.Client().ApplyURI(plain).SetServerSelectionTimeout(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer disconnect(client)
	if err := client.Ping(t.Context(), nil); err == nil {
		t.Error("an unencrypted client was let in")
	}
}

func TestArbiterVotesAndHoldsNothing(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Nodes: 3, Arbiter: true})
	is, err := s.hello(t.Context(), s.nodes[2])
	if err != nil || !is.Arbiter {
		t.Errorf("node 2 says %+v, %v", is, err)
	}
}

func TestWrongWheelIsNotRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), wheelFile)
	if err := os.WriteFile(path, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := verify(path); err == nil || !strings.Contains(err.Error(), wheelSum) {
		t.Errorf("a wheel with another content: %v", err)
	}
}
