package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/test/rig"
)

// The programs' names as the server shows them.
const (
	mongoLoopName  = "bench loop"
	mongoRelayName = "walrelay"
)

var mongoPollers = []poller{
	{name: "mongo poll row", after: "mark", claim: "row", batch: 1000},
	{name: "mongo poll lease", after: "mark", claim: "lease", batch: 5000},
	{name: "mongo poll delete", after: "delete", claim: "lease", batch: 5000},
}

// mongoPolls works a collection off in each way, beside its bare loop.
func (s *site) mongoPolls(t *crew, name string) (results []result) {
	within(t, func(t *crew) {
		c := s.writeDocuments(t, s.mongoServer(t, 2048), s.pollRows, "after_publish: mark\n", "capture: poll\ncheck_interval: 10s\n")
		c.keepStock(t)
		within(t, func(t *crew) { s.collectionWorkedOff(t, c, mongoPollers[0], "warm-up", "walrelay", s.mongoPoll) })
		for _, p := range mongoPollers {
			if name != "mongo poll" && name != p.name {
				continue
			}
			var bare, kafka, relay []drained
			for round := range s.rounds {
				what := fmt.Sprintf("round %d", round+1)
				within(t, func(t *crew) {
					bare = append(bare, s.collectionWorkedOff(t, c, p, what, "bare loop", (*collection).loop))
				})
				within(t, func(t *crew) {
					kafka = append(kafka, s.collectionWorkedOff(t, c, p, what, "bare + kafka", s.collectionLoopWithKafka))
				})
				within(t, func(t *crew) { relay = append(relay, s.collectionWorkedOff(t, c, p, what, "walrelay", s.mongoPoll)) })
			}
			results = append(results, sum("bare loop, "+p.name, bare, bare), sum("bare + kafka, "+p.name, kafka, bare), sum(p.name, relay, bare))
		}
	})
	return results
}

// collectionWorkedOff runs one way on all documents, and looks that nothing is left.
func (s *site) collectionWorkedOff(t *crew, c *collection, p poller, what, who string, run func(*collection, *crew, poller) drained) drained {
	c.restore(t)
	server := serverCPU(c)
	d := run(c, t, p)
	d.walsender = serverCPU(c) - server
	c.checkSettled(t, p.after)
	t.report(p.name, what, who, d)
	return d
}

// loop works off with the driver alone in a process of its own.
func (c *collection) loop(t *crew, p poller) drained { return c.runLoop(t, p, "") }

// collectionLoopWithKafka is loop, and publishes into a topic of its own what it takes.
func (s *site) collectionLoopWithKafka(c *collection, t *crew, p poller) drained {
	topic := s.kafka.Topic(t, partitions, nil)
	defer func() { _, _ = s.kafka.Admin(t).DeleteTopics(context.Background(), topic) }()
	d := c.runLoop(t, p, kafkaVariable+"="+strings.Join(s.kafka.Brokers(), ",")+" "+topic)
	s.checkTopic(t, topic, c.rows)
	return d
}

func (c *collection) runLoop(t *crew, p poller, variable string) drained {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var errors bytes.Buffer
	cmd := exec.Command(self, p.name, strconv.Itoa(p.batch), strconv.Itoa(c.rows), c.house.Database)
	cmd.Env = append(os.Environ(), mongoLoopURL+"="+c.house.Mongo.URL())
	if variable != "" {
		cmd.Env = append(cmd.Env, variable)
	}
	cmd.Stderr = &errors
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	last := c.lastConnection(t)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process := watchProcess(cmd.Process.Pid)
	first := c.firstConnection(t, mongoLoopName, last)
	err = cmd.Wait()
	d := drained{rows: c.rows, took: time.Since(first), before: first.Sub(began)}
	_, d.peak = process.end()
	if err != nil {
		t.Fatalf("bare loop, %s: %v\n%s", p.name, err, errors.String())
	}
	d.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return d
}

// mongoPoll works off with the real binary into a topic of its own.
func (s *site) mongoPoll(c *collection, t *crew, p poller) drained {
	h := *c.house
	h.Source = fmt.Sprintf("after_publish: %s\npoll: {claim: %s, batch: %d}\n", p.after, p.claim, p.batch)
	h.Topic = s.kafka.Topic(t, partitions, nil)
	defer func() { _, _ = s.kafka.Admin(t).DeleteTopics(context.Background(), h.Topic) }()
	last := c.lastConnection(t)
	began := time.Now()
	r := h.Start(t)
	first := c.firstConnection(t, mongoRelayName, last)
	awaitPublished(t, r, c.rows)
	c.awaitSettled(t)
	d := drained{rows: c.rows, took: time.Since(first), before: first.Sub(began), peak: peakOf(r.PID())}
	d.cpu, _ = cpuOf(r.PID())
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("walrelay exited %d:\n%s", code, r.Log())
	}
	s.checkTopic(t, h.Topic, c.rows)
	return d
}

// keepStock copies the pending documents, and restore makes the copy the
// collection again, as if it had just been written.
func (c *collection) keepStock(t *crew) { c.copy(t, "outbox", "stock") }

func (c *collection) restore(t *crew) {
	ctx := context.Background()
	for _, name := range []string{records, "walrelay_leases"} {
		if _, err := c.database().Collection(name).DeleteMany(ctx, bson.D{}); err != nil {
			t.Fatalf("emptying %s: %v", name, err)
		}
	}
	if c.record != nil {
		c.rewind(t)
	}
	c.copy(t, "stock", "outbox")
	// What the copy left to be written would be paid for by the next way.
	if err := c.client.Database("admin").RunCommand(ctx, bson.D{{Key: "fsync", Value: 1}}).Err(); err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
}

// copy replaces the documents of a collection by those of another; its indexes stay.
func (c *collection) copy(t *crew, from, to string) {
	cur, err := c.database().Collection(from).Aggregate(context.Background(), mongo.Pipeline{bson.D{{Key: "$out", Value: to}}})
	if err != nil {
		t.Fatalf("copying %s to %s: %v", from, to, err)
	}
	_ = cur.Close(context.Background())
}

// awaitSettled waits until no document is unfinished. It begins when all are
// published, so that it looks a few times only.
func (c *collection) awaitSettled(t *crew) {
	unfinished := bson.D{{Key: "outbox_route", Value: "orders"}, {Key: "status", Value: bson.D{{Key: "$in", Value: bson.A{"pending", "processing"}}}}}
	rig.Eventually(t, "the last mark", 10*time.Minute, func() error {
		err := c.database().Collection("outbox").FindOne(context.Background(), unfinished, options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})).Err()
		switch {
		case err == nil:
			return errors.New("some documents are unfinished")
		case errors.Is(err, mongo.ErrNoDocuments):
			return nil
		}
		return err
	})
}

// checkSettled wants all documents as after says: marked or gone.
func (c *collection) checkSettled(t *crew, after string) {
	outbox, ctx := c.database().Collection("outbox"), context.Background()
	all, err1 := outbox.CountDocuments(ctx, bson.D{})
	published, err2 := outbox.CountDocuments(ctx, bson.D{{Key: "status", Value: "published"}})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	want := int64(c.rows)
	if after == "delete" {
		want = 0
	}
	if all != want || published != want {
		t.Fatalf("the collection holds %d documents, %d of them published; want %d after %s", all, published, want, after)
	}
}

// lastConnection is the number of the newest connection to the server.
func (c *collection) lastConnection(t *crew) int64 {
	var status struct {
		Connections struct {
			Created int64 `bson:"totalCreated"`
		} `bson:"connections"`
	}
	if err := c.client.Database("admin").RunCommand(context.Background(), bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status); err != nil {
		t.Fatalf("counting connections: %v", err)
	}
	return status.Connections.Created
}

// firstConnection waits for a connection of the program that is newer than last,
// and says when it was seen: there the clock begins.
func (c *collection) firstConnection(t *crew, program string, last int64) time.Time {
	connected := bson.A{
		bson.D{{Key: "$currentOp", Value: bson.D{{Key: "idleConnections", Value: true}}}},
		bson.D{{Key: "$match", Value: bson.D{
			{Key: "appName", Value: bson.D{{Key: "$regex", Value: "^" + program}}},
			{Key: "connectionId", Value: bson.D{{Key: "$gt", Value: last}}},
		}}},
		bson.D{{Key: "$limit", Value: 1}},
	}
	ctx := context.Background()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		cur, err := c.client.Database("admin").Aggregate(ctx, connected)
		if err != nil {
			t.Fatalf("looking for connections: %v", err)
		}
		seen := time.Now()
		found := cur.Next(ctx)
		_ = cur.Close(ctx)
		if found {
			return seen
		}
		if time.Now().After(deadline) {
			t.Fatalf("no program %q has connected in 30 s", program)
		}
	}
}
