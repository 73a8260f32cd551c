package mongo

// C48 Rare writes in a busy cluster
//
// Source: airbytehq/airbyte#34500, mongodb/mongo-kafka#58 and #32 (KAFKA-76), scality/backbeat#2415.
//
// Ideal: the remembered position follows the time of the cluster with no events at all, and a
// restart goes on from it after the oplog has turned over.
//
// Shortened: an oplog of 10 MB that turns over twice. With WALRELAY_TEST_CHAOS: one of
// 990 MB, and 1 GB of foreign writes.

import (
	"fmt"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestC48PositionOfAnIdleCollectionFollowsForeignWrites(t *testing.T) {
	t.Parallel()
	long := os.Getenv("WALRELAY_TEST_CHAOS") != ""
	opts := mongoserver.Options{OplogMB: 10}
	if long {
		opts.OplogMB = 990
	}
	s := newScene(t, mongoserver.Start(t, opts))
	s.Init(t)
	r := s.Start(t)
	s.streams(r)
	first := s.insert("a")
	s.delivers(r, first)
	for range 2 {
		if long {
			s.Mongo.FillOplog(t, 1024)
		} else {
			s.Mongo.OutrunOplog(t)
		}
		written := s.lastWrite() // the oplog may turn over within a second
		r.Eventually("a remembered position of after the foreign writes", soon, func() error {
			at, err := s.remembered()
			if err == nil && at.Before(written) {
				err = fmt.Errorf("it is of %v, which is before %v", at, written)
			}
			return err
		})
		if code, _ := r.Stop(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		r = s.Start(t)
		s.streams(r)
	}
	s.delivers(r, first, s.insert("b"))
}

// remembered is the time of the source's position, as the database has it.
func (s *scene) remembered() (bson.Timestamp, error) {
	var r struct {
		At bson.Timestamp `bson:"cluster_time"`
	}
	err := s.box.Database().Collection("walrelay_sources").FindOne(s.ctx(), bson.D{}).Decode(&r)
	return r.At, err
}

// lastWrite is where the server's oplog ends.
func (s *scene) lastWrite() bson.Timestamp {
	s.t.Helper()
	var hello struct {
		LastWrite struct {
			OpTime struct {
				TS bson.Timestamp `bson:"ts"`
			} `bson:"opTime"`
		} `bson:"lastWrite"`
	}
	if err := s.box.Database().RunCommand(s.ctx(), bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		s.t.Fatal(err)
	}
	return hello.LastWrite.OpTime.TS
}
