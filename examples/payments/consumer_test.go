package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestMain(m *testing.M) {
	defer kafkaserver.StopShared()
	pgserver.Main(m)
}

const group = "payments"

// world is a broker with a topic, and a database with an inbox and a table that
// the handler writes to.
type world struct {
	t       *testing.T
	brokers []string
	topic   string
	group   string
	pool    *pgxpool.Pool
	client  *kgo.Client
}

// newFake has a broker of its own, inside the test.
func newFake(t *testing.T, partitions int32) (*world, *kfake.Cluster) {
	t.Helper()
	const topic = "shop.orders"
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return newWorld(t, cluster.ListenAddrs(), topic), cluster
}

func newWorld(t *testing.T, brokers []string, topic string) *world {
	t.Helper()
	pg := pgserver.Shared(t, pgserver.V18)
	pool, err := pgxpool.New(t.Context(), pg.URL(pg.NewDatabase(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), postgres.DDL(nil)+`create table paid (n bigserial, order_id text)`); err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &world{t, brokers, topic, group + "-" + topic, pool, client}
}

// produce writes records with ids, as the relay does, one partition after the other in turn.
func (w *world) produce(from, to, partitions int) {
	w.t.Helper()
	var records []*kgo.Record
	for n := from; n < to; n++ {
		records = append(records, &kgo.Record{
			Topic: w.topic, Partition: int32(n % partitions), Key: fmt.Appendf(nil, "order-%d", n),
			Headers: []kgo.RecordHeader{{Key: inbox.HeaderEventID, Value: fmt.Appendf(nil, "0198f3a0-0000-7000-8000-%012d", n)}},
		})
	}
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// committed is the sum of the group's offsets.
func (w *world) committed() int64 {
	w.t.Helper()
	offsets, err := kadm.NewClient(w.client).FetchOffsets(w.t.Context(), w.group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return 0
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var sum int64
	offsets.Each(func(o kadm.OffsetResponse) { sum += max(o.At, 0) })
	return sum
}

// paid lists the orders in the order of their payment.
func (w *world) paid() []string {
	w.t.Helper()
	rows, err := w.pool.Query(context.Background(), `select order_id from paid order by n`)
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// service is one running consumer with an inbox of its own.
type service struct {
	in    *postgres.Inbox
	stop  context.CancelFunc
	ended chan error
}

// start starts a consumer; before may be nil, and is called in the handler's transaction.
func (w *world) start(before func(m inbox.Message) error, more ...kgo.Opt) *service {
	w.t.Helper()
	core, err := inbox.New(inbox.Options{Route: "payments"})
	if err != nil {
		w.t.Fatal(err)
	}
	s := &service{ended: make(chan error, 1)}
	if s.in, err = postgres.New(core, postgres.Options{}); err != nil {
		w.t.Fatal(err)
	}
	c, err := newConsumer(w.brokers, w.group, w.topic, func(ctx context.Context, r inbox.Record) error {
		_, err := s.in.Process(ctx, w.pool, r, func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
			if before != nil {
				if err := before(m); err != nil {
					return err
				}
			}
			_, err := tx.Exec(ctx, `insert into paid (order_id) values ($1)`, string(m.Key))
			return err
		})
		return err
	}, append(more, kgo.FetchMaxWait(100*time.Millisecond), kgo.HeartbeatInterval(100*time.Millisecond))...)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() {
		err := c.run(ctx)
		c.close()
		s.ended <- err
	}()
	w.t.Cleanup(stop)
	return s
}

// end ends the consumer and returns its error.
func (s *service) end(t *testing.T) error {
	t.Helper()
	s.stop()
	return s.wait(t)
}

func (s *service) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("the consumer did not end")
		return nil
	}
}

func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not within 30 s; paid %v, committed %d", what, w.paid(), w.committed())
		}
		<-tick.C
	}
}

func TestOffsetIsCommittedOnlyAfterTheTransaction(t *testing.T) {
	t.Parallel()
	w, _ := newFake(t, 1)
	w.produce(0, 3, 1)
	s := w.start(func(m inbox.Message) error {
		// Each record is looked at while its transaction is open.
		if at := w.committed(); at > m.Offset {
			t.Errorf("offset %d is committed while record %d is handled", at, m.Offset)
		}
		return nil
	})
	w.until("the commit", func() bool { return w.committed() == 3 })
	if n := len(w.paid()); n != 3 {
		t.Errorf("%d orders are paid at the commit of the offset", n)
	}
	if err := s.end(t); err != nil {
		t.Error(err)
	}
}

func TestCrashBetweenTheTwoCommitsIsSkippedAtRedelivery(t *testing.T) {
	t.Parallel()
	w, cluster := newFake(t, 1)
	w.produce(0, 5, 1)
	// The first consumer dies before Kafka knows: to Kafka that is a commit that never arrives.
	var lost atomic.Int32
	cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		lost.Add(1)
		commit := req.(*kmsg.OffsetCommitRequest)
		resp := commit.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, rt := range commit.Topics {
			st := kmsg.NewOffsetCommitResponseTopic()
			st.Topic, st.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				sp := kmsg.NewOffsetCommitResponseTopicPartition()
				sp.Partition, sp.ErrorCode = rp.Partition, kerr.UnknownMemberID.Code
				st.Partitions = append(st.Partitions, sp)
			}
			resp.Topics = append(resp.Topics, st)
		}
		return resp, nil, lost.Load() == 1
	})
	first := w.start(nil)
	w.until("the commit that is lost", func() bool { return lost.Load() == 1 })
	if err := first.end(t); err != nil {
		t.Error(err)
	}
	if n, at := len(w.paid()), w.committed(); n != 5 || at != 0 {
		t.Fatalf("%d orders are paid and offset %d is committed, want 5 and 0", n, at)
	}
	second := w.start(nil)
	w.until("the redelivery", func() bool { return w.committed() == 5 })
	if err := second.end(t); err != nil {
		t.Error(err)
	}
	if s := second.in.Stats(); s.Duplicates != 5 || s.Handled != 0 {
		t.Errorf("the second consumer: %+v, want 5 duplicates", s)
	}
	if n := len(w.paid()); n != 5 {
		t.Errorf("%d payments of 5 orders", n)
	}
}

func TestConsumerStopsAtARecordThatFailsAndNeverPassesIt(t *testing.T) {
	t.Parallel()
	w, _ := newFake(t, 1)
	w.produce(0, 5, 1)
	noMoney := errors.New("no money")
	for range 2 { // also after a restart
		s := w.start(func(m inbox.Message) error {
			if m.Offset == 2 {
				return noMoney
			}
			return nil
		})
		if err := s.wait(t); !errors.Is(err, noMoney) {
			t.Errorf("the consumer ended with %v", err)
		}
		if at := w.committed(); at != 2 {
			t.Errorf("offset %d is committed, want 2", at)
		}
	}
	s := w.start(nil)
	w.until("the rest", func() bool { return w.committed() == 5 })
	if err := s.end(t); err != nil {
		t.Error(err)
	}
	if got, want := w.paid(), []string{"order-0", "order-1", "order-2", "order-3", "order-4"}; !slices.Equal(got, want) {
		t.Errorf("paid %v, want %v", got, want)
	}
}

// A second consumer joins while the first one is busy, and then the first leaves.
func TestRebalanceLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	const partitions = 4
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		w, _ := newFake(t, partitions)
		rebalance(t, w, partitions)
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		k := kafkaserver.Shared(t)
		rebalance(t, newWorld(t, k.Brokers(), k.Topic(t, partitions, nil)), partitions)
	})
}

func rebalance(t *testing.T, w *world, partitions int) {
	records := 0
	produce := func(n int) {
		w.produce(records, records+n, partitions)
		records += n
	}
	produce(100)
	var mu sync.Mutex
	handledBy := map[int]int{}
	count := func(who int) func(inbox.Message) error {
		return func(inbox.Message) error {
			mu.Lock()
			defer mu.Unlock()
			handledBy[who]++
			return nil
		}
	}
	by := func(who int) int {
		mu.Lock()
		defer mu.Unlock()
		return handledBy[who]
	}
	first := w.start(count(1))
	w.until("the first consumer at work", func() bool { return by(1) > 10 })
	second := w.start(count(2))
	w.until("the second consumer at work", func() bool {
		produce(4)
		return by(2) > 0
	})
	produce(40)
	if err := first.end(t); err != nil {
		t.Error(err)
	}
	produce(40)
	w.until("the last record", func() bool { return w.committed() == int64(records) })
	if err := second.end(t); err != nil {
		t.Error(err)
	}
	if got := w.paid(); len(got) != records || len(slices.Compact(slices.Sorted(slices.Values(got)))) != records {
		t.Errorf("%d payments of %d orders", len(got), records)
	}
	// Offsets were committed before partitions moved, so that the inbox had nothing to
	// skip, save the record at which the first was told to end: its commit was not awaited.
	if d := first.in.Stats().Duplicates + second.in.Stats().Duplicates; d > 1 {
		t.Errorf("%d records came twice", d)
	}
}

// Two processes with one name would take each other's partitions away for ever.
func TestSecondProcessOfTheSameNameEndsTheFirst(t *testing.T) {
	t.Parallel()
	w, _ := newFake(t, 1)
	w.produce(0, 1, 1)
	first := w.start(nil, kgo.InstanceID("payments-1"))
	w.until("the first at work", func() bool { return w.committed() == 1 })
	second := w.start(nil, kgo.InstanceID("payments-1"))
	if err := first.wait(t); !errors.Is(err, kerr.FencedInstanceID) {
		t.Errorf("the first ended with %v", err)
	}
	w.produce(1, 2, 1)
	w.until("the second at work", func() bool { return w.committed() == 2 })
	if err := second.end(t); err != nil {
		t.Error(err)
	}
}
