package mongo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/mongoload"
	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

var errMissing = errors.New("it is missing")

// soon bounds what ought to take a second or two, on a machine that runs many other things.
const soon = 60 * time.Second

// scene is a house with its topic, and perhaps under load.
type scene struct {
	*rig.House
	t     *testing.T
	k     *kafkaserver.Server
	box   *mongo.Collection // the outbox, through one client
	load  *mongoload.Load
	end   context.CancelFunc
	ended sync.WaitGroup
}

// newScene makes a house that is not initialised yet.
func newScene(t *testing.T, m *mongoserver.Server) *scene {
	t.Helper()
	k := kafkaserver.Shared(t)
	h := rig.NewMongoHouse(t, m, k.Brokers(), k.Topic(t, 6, nil))
	return &scene{House: h, t: t, k: k, box: h.Outbox(t)}
}

// begin puts four writers to work: transactions of 1 to 20 documents over 50 keys, a fifth
// of them deleted by the transaction that inserted them, a tenth rolled back.
func (s *scene) begin(rate int) {
	s.t.Helper()
	s.load = mongoload.New(s.t, mongoload.Options{URL: s.Mongo.URL(), Database: s.Database, Rate: rate})
	ctx, cancel := context.WithCancel(s.t.Context())
	s.end = cancel
	s.ended.Go(func() { s.load.Run(ctx, s.t) })
	s.t.Cleanup(func() {
		cancel()
		s.ended.Wait()
	})
}

// pause lets the load run on.
func (s *scene) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.t.Context().Done():
	}
}

// published waits until the relay has published n more events.
func (s *scene) published(r *rig.Relay, n int) {
	s.t.Helper()
	first := int64(-1)
	r.Eventually(fmt.Sprintf("progress by %d events", n), soon, func() error {
		st, err := r.Status()
		if err != nil {
			return err
		}
		now := st.Sources[0].Events.Published
		if first < 0 {
			first = now
		}
		if now-first < int64(n) {
			return fmt.Errorf("%d of %d", now-first, n)
		}
		return nil
	})
}

// judge ends the load, lets the relay catch up and compares.
func (s *scene) judge(r *rig.Relay) oracle.Verdict {
	s.t.Helper()
	s.end()
	s.ended.Wait()
	committed := s.load.Committed(s.t)
	var v oracle.Verdict
	r.Eventually("everything committed in Kafka", 2*soon, func() error {
		st, err := r.Status()
		if err != nil {
			return err
		}
		if st.Sources[0].InFlightEvents > 0 || !st.Ready {
			return errors.New("still at work")
		}
		v = oracle.Check(committed, s.k.Consume(s.t, s.Topic))
		if v.Lost > 0 {
			return fmt.Errorf("%s", v)
		}
		return nil
	})
	s.t.Logf("%s; load %+v", v, s.load.Stats())
	if !v.CleanButForDuplicates() {
		s.t.Errorf("what arrived is not what was committed: %s", v)
	}
	return v
}

// arrived are the event ids of all records in the topic.
func (s *scene) arrived() (ids []string) {
	s.t.Helper()
	for _, r := range s.k.Consume(s.t, s.Topic) {
		ids = append(ids, oracle.EventID(r))
	}
	return ids
}

// insert inserts one event outside of a transaction and returns its id.
func (s *scene) insert(key string) string {
	s.t.Helper()
	d := rig.Document("orders", key, bson.D{{Key: "key", Value: key}})
	if _, err := s.box.InsertOne(s.ctx(), d); err != nil {
		s.t.Fatal(err)
	}
	return d[0].Value.(string)
}

// delivers waits until all the events are in the topic, each once.
func (s *scene) delivers(r *rig.Relay, ids ...string) {
	s.t.Helper()
	s.holds(r, ids...)
	if n := len(s.arrived()); n != len(ids) {
		s.t.Fatalf("%d records of %d events", n, len(ids))
	}
}

// holds waits until all the events are in the topic, and perhaps again: after a kill.
func (s *scene) holds(r *rig.Relay, ids ...string) {
	s.t.Helper()
	r.Eventually(fmt.Sprintf("%d events in Kafka", len(ids)), soon, func() error {
		have := map[string]bool{}
		all := s.arrived()
		for _, id := range all {
			have[id] = true
		}
		for i, id := range ids {
			if !have[id] {
				return fmt.Errorf("event %d is missing; there are %d records", i, len(all))
			}
		}
		return nil
	})
}

// streams waits until the source follows its stream.
func (s *scene) streams(r *rig.Relay) {
	s.t.Helper()
	r.WaitReady(soon)
	s.state(r, event.StateStreaming)
}

func (s *scene) state(r *rig.Relay, want event.State) {
	s.t.Helper()
	r.Eventually("the state "+string(want), soon, func() error {
		st, err := r.Status()
		if err == nil && st.Sources[0].State != want {
			err = fmt.Errorf("it is %s", st.Sources[0].State)
		}
		return err
	})
}

func (s *scene) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	s.t.Cleanup(cancel)
	return ctx
}

// contains checks what a person is told.
func contains(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not say %q:\n%s", what, w, text)
		}
	}
}
