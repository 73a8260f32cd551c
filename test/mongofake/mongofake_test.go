package mongofake

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestMain(m *testing.M) { mongoserver.Main(m) }

// at is the cluster time of the test's n-th event.
func at(n int) bson.Timestamp { return bson.Timestamp{T: 1000, I: uint32(n)} }

func inserted(n int) bson.D {
	return Insert("db", "outbox", at(n), 0, bson.D{{Key: "_id", Value: n}})
}

func watch(t *testing.T, client *mongo.Client, more ...options.Lister[options.ChangeStreamOptions]) *mongo.ChangeStream {
	t.Helper()
	stream, err := client.Database("db").Collection("outbox").Watch(t.Context(), mongo.Pipeline{}, more...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close(context.Background()) })
	return stream
}

// want reads the next events and compares their _id.
func want(t *testing.T, stream *mongo.ChangeStream, ids ...int32) {
	t.Helper()
	for _, id := range ids {
		if !stream.Next(t.Context()) {
			t.Fatalf("stream ended before document %d: %v", id, stream.Err())
		}
		if got := stream.Current.Lookup("documentKey", "_id").Int32(); got != id {
			t.Fatalf("event of document %d, want %d", got, id)
		}
	}
}

func code(err error) int {
	var server mongo.ServerError
	if errors.As(err, &server) && len(server.ErrorCodes()) > 0 {
		return server.ErrorCodes()[0]
	}
	return 0
}

func TestHoursOfWatchingPassAtOnceInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(t)
		stream := watch(t, s.Client(t))
		began := time.Now()
		time.AfterFunc(2*time.Hour, func() { s.Emit(inserted(1), inserted(2)) })
		want(t, stream, 1, 2)
		if waited := time.Since(began); waited < 2*time.Hour || waited > 2*time.Hour+time.Minute {
			t.Errorf("the events came after %s", waited)
		}
		if n := len(s.Received("getMore")); n < 7000 {
			t.Errorf("%d getMore in 7200 seconds", n)
		}
	})
}

func TestDriverResumesWhereAScriptedFaultStruck(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]Answer{
		"error with the label": Fail(91, "shutting down", "ResumableChangeStreamError"),
		"dropped connection":   Drop(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(t)
				stream := watch(t, s.Client(t))
				s.Emit(inserted(1))
				want(t, stream, 1)
				s.Script("getMore", fault)
				s.Emit(inserted(2))
				want(t, stream, 2)
				opened := s.Received("aggregate")
				if len(opened) != 2 {
					t.Fatalf("opened %d times, want 2", len(opened))
				}
				after := opened[1].Documents("pipeline")[0].Lookup("$changeStream", "resumeAfter", "_data").StringValue()
				if first := inserted(1)[0].Value.(bson.D)[0].Value; after != first {
					t.Errorf("resumed after %s, want %s", after, first)
				}
			})
		})
	}
}

func TestStreamsStartWhereTheyAreToldTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(t)
		client := s.Client(t)
		s.Emit(inserted(1), inserted(2))
		s.Emit(inserted(3))
		want(t, watch(t, client, options.ChangeStream().SetStartAfter(inserted(2)[0].Value)), 3)
		want(t, watch(t, client, options.ChangeStream().SetResumeAfter(bson.D{{Key: "_data", Value: IdleToken(at(1))}})), 1, 2, 3)
		start := at(2)
		want(t, watch(t, client, options.ChangeStream().SetStartAtOperationTime(&start)), 2, 3)
		now := watch(t, client)
		s.Emit(inserted(4))
		want(t, now, 4)
	})
}

func TestForgottenPositionIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(t)
		s.Emit(inserted(1), inserted(2))
		s.Forget(IdleToken(at(2)))
		_, err := s.Client(t).Database("db").Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetStartAfter(inserted(1)[0].Value))
		if code(err) != historyLost {
			t.Errorf("opened with %v, want code %d", err, historyLost)
		}
	})
}

func TestCursorStaysOpenUntilItIsKilled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(t)
		stream := watch(t, s.Client(t))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			s.Await(t, "getMore", 1)
			cancel()
		}()
		if stream.Next(ctx) {
			t.Error("an event out of nothing")
		}
		if n := s.OpenCursors(); n != 1 {
			t.Errorf("%d cursors open after a cancelled getMore, want 1", n)
		}
		other := watch(t, s.Client(t))
		if err := other.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.OpenCursors(); n != 1 {
			t.Errorf("%d cursors open after one of two was closed, want 1", n)
		}
	})
}

func TestHeldCommandAnswersWhenReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(t)
		client := s.Client(t)
		released := make(chan struct{})
		s.Script("ping", Hold(released, Default()))
		answered := make(chan error, 1)
		go func() { answered <- client.Ping(context.Background(), nil) }()
		synctest.Wait()
		select {
		case err := <-answered:
			t.Fatalf("answered before its release: %v", err)
		default:
		}
		close(released)
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

func TestHandlersSeeTheDocumentsOfACommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(t)
		outbox := s.Client(t).Database("db").Collection("outbox")
		s.Handle("insert", func(c Command) Answer {
			return OK(bson.E{Key: "n", Value: len(c.Documents("documents"))})
		})
		s.Handle("find", func(c Command) Answer {
			return Cursor("db."+c.Lookup("find").StringValue(), bson.D{{Key: "_id", Value: 7}})
		})
		s.Handle("update", func(c Command) Answer {
			n := len(c.Documents("updates"))
			return OK(bson.E{Key: "n", Value: n}, bson.E{Key: "nModified", Value: n})
		})
		s.Handle("findAndModify", func(Command) Answer {
			return OK(bson.E{Key: "value", Value: bson.D{{Key: "_id", Value: 8}}})
		})
		if _, err := outbox.InsertMany(t.Context(), []any{bson.D{}, bson.D{}}); err != nil {
			t.Errorf("insert: %v", err)
		}
		var found struct {
			ID int `bson:"_id"`
		}
		if err := outbox.FindOne(t.Context(), bson.D{}).Decode(&found); err != nil || found.ID != 7 {
			t.Errorf("found %d, %v", found.ID, err)
		}
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
		if result, err := outbox.UpdateMany(t.Context(), bson.D{}, set); err != nil || result.ModifiedCount != 1 {
			t.Errorf("update: %+v, %v", result, err)
		}
		if err := outbox.FindOneAndUpdate(t.Context(), bson.D{}, set).Decode(&found); err != nil || found.ID != 8 {
			t.Errorf("found and updated %d, %v", found.ID, err)
		}
		if _, err := outbox.DeleteOne(t.Context(), bson.D{}); code(err) != 59 {
			t.Errorf("a command without a handler: %v, want code 59", err)
		}
	})
}

func TestConnectionStringReachesTheServer(t *testing.T) {
	t.Parallel()
	s := New(t)
	client, err := mongo.Connect(options.Client().ApplyURI(s.URL(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	stream := watch(t, client)
	s.Emit(inserted(1))
	want(t, stream, 1)
}

// TestEventsLookAsTheServersDo compares with a real one what code under test may
// look into: the fields of an event and the length and fixed parts of tokens.
func TestEventsLookAsTheServersDo(t *testing.T) {
	t.Parallel()
	server := mongoserver.Shared(t)
	client, database := server.Client(t), server.NewDatabase(t)
	stream, err := client.Database(database).Collection("outbox").Watch(t.Context(), mongo.Pipeline{},
		options.ChangeStream().SetBatchSize(0).SetMaxAwaitTime(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close(context.Background()) }()
	const timeDigits = 18 // 82, seconds, increment
	if got, made := tokenOf(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: stream.ResumeToken()}), IdleToken(at(1)); got[timeDigits:] != made[timeDigits:] {
		t.Errorf("idle token of the server %s, ours %s", got, made)
	}
	for i, id := range []any{1, "one", bson.NewObjectID()} {
		document := bson.D{{Key: "_id", Value: id}}
		if _, err := client.Database(database).Collection("outbox").InsertOne(t.Context(), document); err != nil {
			t.Fatal(err)
		}
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		var got bson.D
		if err := bson.Unmarshal(stream.Current, &got); err != nil {
			t.Fatal(err)
		}
		sec, inc := stream.Current.Lookup("clusterTime").Timestamp()
		made := Insert(database, "outbox", bson.Timestamp{T: sec, I: inc}, 0, document)
		if len(got) != len(made) {
			t.Fatalf("event %v, ours %v", got, made)
		}
		for j := range got {
			if got[j].Key != made[j].Key {
				t.Errorf("field %d is %s, ours %s", j, got[j].Key, made[j].Key)
			}
		}
		theirs, ours := tokenOf(stream.Current.Lookup("_id")), made[0].Value.(bson.D)[0].Value.(string)
		uuid := len(head(at(1)) + "2B022C0100" + "29" + "6E5A1004")
		if len(theirs) != len(ours) || theirs[:uuid] != ours[:uuid] || theirs[uuid+32:] != ours[uuid+32:] {
			t.Errorf("token of event %d is %s, ours %s", i, theirs, ours)
		}
	}
}

func TestSecondaryIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(t)
		outbox := s.Client(t).Database("db").Collection("outbox")
		s.Handle("insert", func(Command) Answer { return OK(bson.E{Key: "n", Value: 1}) })
		if _, err := outbox.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		s.StepDown(true)
		s.Disconnect()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := outbox.InsertOne(ctx, bson.D{}); err == nil {
			t.Error("a secondary took a write")
		}
		s.StepDown(false)
		if _, err := outbox.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Errorf("primary again: %v", err)
		}
	})
}
