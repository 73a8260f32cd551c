package cases

// C40 Acknowledged by the leader only
//
// Source: hoangdaochuz/booking#49, confluentinc/librdkafka#1812, strimzi/strimzi-kafka-operator#7461.
//
// Ideal: acks=all whatever the settings; nothing is lost when leaders die under
// load; with one broker of three left the relay waits, says for what, and
// recovers; weak topics are warned of at the start.
//
// Shortened: the leader is killed 4 times in place of 10. A setting for acks is
// refused: C72.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
	"github.com/walrelay/walrelay/test/workload"
)

func TestC40LeadersThatDieUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{Brokers: 3})
	h := rig.NewHouse(t, pgserver.Start(t, pgserver.Options{}), k.Brokers(), k.Topic(t, 6, map[string]string{"min.insync.replicas": "2"}))
	h.Routes = weakTopics(t, k)
	h.Init(t)
	r := h.Start(t)
	warnedAtTheStart(t, r)

	load := workload.New(t, workload.Options{DSN: h.PG.URL(h.Database), Table: "public.outbox", Rate: 30})
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		load.Run(ctx, t)
	}()
	defer func() {
		end()
		<-ended
	}()
	progress(t, r, 200)
	admin := k.Admin(t)
	for i := range 4 {
		leader := leaderOf(t, admin, h.Topic)
		k.Kill(t, leader)
		began := time.Now()
		progress(t, r, 200)
		t.Logf("leader %d killed (%d): 200 events later after %s", leader, i, time.Since(began).Round(10*time.Millisecond))
		k.StartAgain(t, leader)
		allInSync(t, admin, h.Topic)
	}

	// One broker is left: the others leave in good order, so that it leads.
	k.Stop(t, 2)
	k.Stop(t, 3)
	contains(t, "/readyz", r.WaitNotReady(soon, "min.insync.replicas"), h.Topic)
	stood := confirmed(t, h)
	floor := insertRows(t, h, 1, 50, 0) // of other keys than the load's
	during(t, 5*time.Second, func() {
		if code, body, err := r.Get("/healthz"); err != nil || code != 200 {
			t.Errorf("liveness is %d %v while replicas are missing: %s", code, err, body)
		}
		if at := confirmed(t, h); at > floor {
			t.Errorf("the slot went from %s to %s, beyond %s, while Kafka could not acknowledge", stood, at, floor)
		}
	})
	k.StartAgain(t, 2, 3)
	r.WaitReady(soon)
	progress(t, r, 200)
	end()
	<-ended
	drained(t, h, insertRows(t, h, 1000, 1, 0), 2*soon)
	all := append(load.Committed(), committed(t, h)...)
	v := oracle.Require(t, all, k.Consume(t, h.Topic), 0)
	t.Log(v)
	if code, took := r.Stop(); code != 0 {
		t.Errorf("the stop took %s and exited %d", took, code)
	}
}

// weakTopics makes two topics that should not be used, and routes to them.
func weakTopics(t *testing.T, k *kafkaserver.Server) (routes string) {
	t.Helper()
	one := "1"
	for name, replicas := range map[string]int16{"lone": 1, "thin": 3} {
		_, err := k.Admin(t).CreateTopic(t.Context(), 1, replicas, map[string]*string{"min.insync.replicas": &one}, name)
		if err != nil {
			t.Fatal(err)
		}
	}
	return "lone: {topic: lone}\nthin: {topic: thin}"
}

// warnedAtTheStart waits for the warnings; no event has come yet.
func warnedAtTheStart(t *testing.T, r *rig.Relay) {
	t.Helper()
	r.Eventually("the warnings of both weak topics", soon, func() error {
		st, err := r.Status()
		if err != nil {
			return err
		}
		text := fmt.Sprint(st.Warnings)
		for _, want := range []string{"topic lone: replication factor is 1", "topic thin: min.insync.replicas is 1"} {
			if !strings.Contains(text, want) {
				return errors.New(text)
			}
		}
		return nil
	})
}

// progress waits until Kafka has acknowledged n more events.
func progress(t *testing.T, r *rig.Relay, n int64) {
	t.Helper()
	first := published(t, r)
	r.Eventually(fmt.Sprintf("%d more events", n), soon, func() error {
		if now := published(t, r); now < first+n {
			return fmt.Errorf("%d of %d", now-first, n)
		}
		return nil
	})
}

// leaderOf is the leader of the topic's partition 0, as the brokers that live have it.
func leaderOf(t *testing.T, admin *kadm.Client, topic string) (node int) {
	t.Helper()
	meta, err := admin.Metadata(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return int(meta.Topics[topic].Partitions[0].Leader)
}

// allInSync waits until every partition has three replicas in sync.
func allInSync(t *testing.T, admin *kadm.Client, topic string) {
	t.Helper()
	rig.Eventually(t, "all replicas in sync", 2*soon, func() error {
		meta, err := admin.Metadata(t.Context(), topic)
		if err != nil {
			return err
		}
		for id, p := range meta.Topics[topic].Partitions {
			if len(p.ISR) < 3 {
				return fmt.Errorf("partition %d has %v in sync", id, p.ISR)
			}
		}
		return nil
	})
}
