package library

// Case C67, restart from an old snapshot, with a process of its own and MongoDB.
// Source: theinterfold/interfold#1669 (2026).
// Ideal: the first stamp after the start is greater than the greatest durable one.

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
	stagemongo "github.com/walrelay/walrelay/stage/mongo"
	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/rig"
)

func writeToMongoUntilKilled(address string) error {
	ctx := context.Background()
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	client, err := mongo.Connect(options.Client().ApplyURI(address))
	if err != nil {
		return err
	}
	db := client.Database(u.Query().Get("appName")) // which is free for our purposes
	out, err := stagemongo.Open(ctx, db, stagemongo.Options{Now: func() time.Time { return time.Now().Add(2 * time.Second) }})
	if err != nil {
		return err
	}
	many := make([]stage.Event, 100)
	for i := range many {
		many[i] = order()
	}
	for range 100 {
		if _, err := commitMongo(ctx, db, out, many...); err != nil {
			return err
		}
	}
	for {
		if _, err := commitMongo(ctx, db, out, order()); err != nil {
			return err
		}
	}
}

func TestC67KilledProcessIsFollowedByOneThatStampsAboveItsLastDocument(t *testing.T) {
	t.Parallel()
	// Of its own: the open transaction of the dead process holds up who drops the database.
	server := mongoserver.Start(t, mongoserver.Options{})
	db := server.Client(t).Database("shop")
	initialize(t, db)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writer := exec.Command(program)
	writer.Env = append(os.Environ(), writerURL+"="+server.URL()+"&appName="+db.Name())
	writer.Stderr = os.Stderr
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Process.Kill(); _ = writer.Wait() })
	outbox := db.Collection("outbox")
	rig.Eventually(t, "10 000 stamps, and then some", soon, func() error {
		n, err := outbox.CountDocuments(t.Context(), bson.D{})
		if err == nil && n < 10_050 {
			err = fmt.Errorf("%d documents", n)
		}
		return err
	})
	if err := writer.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = writer.Wait()
	// A transaction that was open stays open for the server until it is too old; what it
	// has written conflicts, and is never seen. One whose commit was under way is there soon.
	var top hlc.Stamp
	rig.Eventually(t, "no further document", soon, func() error {
		var last struct{ HLC int64 }
		err := outbox.FindOne(t.Context(), bson.D{}, options.FindOne().SetSort(bson.D{{Key: "hlc", Value: -1}})).Decode(&last)
		if err == nil && hlc.Stamp(last.HLC) != top {
			top, err = hlc.Stamp(last.HLC), fmt.Errorf("stamps go up to %d", last.HLC)
		}
		return err
	})
	// The clock is right again, and behind the dead process's.
	if without := hlc.New(time.Now, 0).Now(); without >= top {
		t.Fatalf("a clock without a checkpoint is at %s, the greatest stamp in the outbox is %s: the test proves nothing", without, top)
	}
	out, err := stagemongo.Open(t.Context(), db, stagemongo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	staged, err := commitMongo(t.Context(), db, out, order())
	if err != nil || staged[0].Stamp <= top {
		t.Errorf("the first stamp after the start is %s, %v, the greatest in the outbox %s", staged[0].Stamp, err, top)
	}
}
