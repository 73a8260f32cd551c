package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// mongoDrains drains one backlog of a collection's changes, with the driver alone
// and with walrelay.
func (s *site) mongoDrains(t *crew) (results []result) {
	within(t, func(t *crew) {
		c := s.writeDocuments(t, s.mongoServer(t, 8192), s.rows, "after_publish: keep\n", fmt.Sprintf("check_interval: 10s\nbatch_size: %d\n", mongoBatch))
		entrants := []struct {
			name  string
			drain func(*crew, *collection) drained
		}{{"raw change stream", s.mongoRaw}, {"walrelay", s.mongoRelay}}
		runs := make([][]drained, len(entrants))
		once := func(i int, what string) {
			within(t, func(t *crew) {
				d := entrants[i].drain(t, c)
				t.report("mongo", what, entrants[i].name, d)
				if what != "warm-up" {
					runs[i] = append(runs[i], d)
				}
			})
		}
		once(1, "warm-up")
		for round := range s.rounds {
			for i := range entrants {
				once(i, fmt.Sprintf("round %d", round+1))
			}
		}
		for i, e := range entrants {
			results = append(results, sum(e.name+", mongo", runs[i], runs[0]))
		}
	})
	return results
}

// mongoRaw drains with the driver in a process of its own.
func (s *site) mongoRaw(t *crew, c *collection) drained {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var errors bytes.Buffer
	cmd := exec.Command(self, c.house.Database, "outbox", strconv.Itoa(c.rows), fmt.Sprint(c.began.T), fmt.Sprint(c.began.I))
	cmd.Env = append(os.Environ(), mongoRawURL+"="+c.house.Mongo.URL())
	cmd.Stderr = &errors
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	server := serverCPU(c)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client := watchProcess(cmd.Process.Pid)
	opened := awaitStream(t, c, began)
	err = cmd.Wait()
	d := drained{rows: c.rows, took: time.Since(opened), before: opened.Sub(began), walsender: serverCPU(c) - server}
	_, d.peak = client.end()
	if err != nil {
		t.Fatalf("raw change stream: %v\n%s", err, errors.String())
	}
	d.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return d
}

// mongoRelay drains with the real binary into a topic of its own.
func (s *site) mongoRelay(t *crew, c *collection) drained {
	c.rewind(t)
	h := *c.house
	h.Topic = s.kafka.Topic(t, partitions, nil)
	defer func() { _, _ = s.kafka.Admin(t).DeleteTopics(context.Background(), h.Topic) }()
	server := serverCPU(c)
	began := time.Now()
	r := h.Start(t)
	opened := awaitStream(t, c, began)
	awaitPublished(t, r, c.rows)
	d := drained{rows: c.rows, took: time.Since(opened), before: opened.Sub(began), walsender: serverCPU(c) - server, peak: peakOf(r.PID())}
	d.cpu, _ = cpuOf(r.PID())
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("walrelay exited %d:\n%s", code, r.Log())
	}
	s.checkTopic(t, h.Topic, c.rows)
	return d
}

// serverCPU is what mongod has used so far.
func serverCPU(c *collection) time.Duration {
	used, _ := cpuOf(c.house.Mongo.PID(0))
	return used
}

// awaitStream waits for a change stream on the house's database that was opened
// after that moment, and says when it was: there the clock begins. The server's
// clock is ours.
func awaitStream(t *crew, c *collection, after time.Time) time.Time {
	streams := bson.A{
		bson.D{{Key: "$currentOp", Value: bson.D{{Key: "idleCursors", Value: true}}}},
		bson.D{{Key: "$match", Value: bson.D{
			{Key: "ns", Value: bson.D{{Key: "$regex", Value: "^" + c.house.Database + `\.`}}},
			{Key: "cursor.originatingCommand.pipeline.$changeStream", Value: bson.D{{Key: "$exists", Value: true}}},
			{Key: "cursor.createdDate", Value: bson.D{{Key: "$gte", Value: after.Add(-time.Millisecond)}}},
		}}},
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "first", Value: bson.D{{Key: "$min", Value: "$cursor.createdDate"}}}}}},
	}
	ctx := context.Background()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		cur, err := c.client.Database("admin").Aggregate(ctx, streams)
		if err != nil {
			t.Fatalf("looking for the change stream: %v", err)
		}
		var found []struct {
			First time.Time `bson:"first"`
		}
		if err := cur.All(ctx, &found); err != nil {
			t.Fatalf("looking for the change stream: %v", err)
		}
		if len(found) > 0 {
			return found[0].First
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody has opened a change stream of %s in 30 s", c.house.Database)
		}
	}
}
