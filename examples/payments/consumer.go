package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/inbox"
)

// atOnce bounds the records of one poll. They must be handled within the group's
// rebalance timeout (60 s), since no partition is given away meanwhile.
const atOnce = 100

// consumer hands records to handle, one partition's in their order, and commits
// their offsets afterwards:
//
//	poll ──► handle: mark, work, commit of the transaction ──► commit of the offset
//	  ▲                                                               │
//	  └────────── partitions may move to other consumers here ◄───────┘
//
// Whatever ends between the two commits, here or at another consumer of the group,
// leads to a second delivery, which the inbox recognizes.
type consumer struct {
	client *kgo.Client
	handle func(context.Context, inbox.Record) error
}

func newConsumer(brokers []string, group, topic string, handle func(context.Context, inbox.Record) error, more ...kgo.Opt) (*consumer, error) {
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(brokers...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		// A new group starts with the oldest record, not with those that come from now on.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		// The relay can publish in Kafka transactions; aborted records are not for us.
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableAutoCommit(),
		// A partition that is taken away while its records are handled would have another
		// consumer handle them at the same time: the inbox keeps that harmless, but
		// offsets would go back and forth.
		kgo.BlockRebalanceOnPoll(),
	}, more...)...)
	if err != nil {
		return nil, err
	}
	return &consumer{client, handle}, nil
}

// run consumes until ctx ends, then it returns nil, or until a record cannot be
// handled. That record's offset is not committed and none after it in its
// partition: it is the first one to come after a restart.
func (c *consumer) run(ctx context.Context) error {
	for {
		fetches := c.client.PollRecords(ctx, atOnce)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return nil
		}
		var errs []error
		fetches.EachError(func(topic string, partition int32, err error) {
			if _, left := errors.AsType[*kgo.ErrGroupSession](err); left && !errors.Is(err, kerr.FencedInstanceID) {
				log.Printf("the group went on without us, we join it again: %v", err)
				return
			}
			// The client repeats by itself what may get better, so this will not: the topic
			// is not ours to read, or another process has our name.
			errs = append(errs, fmt.Errorf("fetching %s:%d: %w", topic, partition, err))
		})
		var done []*kgo.Record // the last one handled of each partition
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			last, err := c.partition(ctx, p.Records)
			if last != nil {
				done = append(done, last)
			}
			errs = append(errs, err)
		})
		c.commit(ctx, done)
		c.client.AllowRebalance()
		if err := errors.Join(errs...); err != nil {
			if ctx.Err() != nil {
				return nil // what was under way when the end came has been rolled back
			}
			return err
		}
	}
}

// partition handles records up to the first that fails.
func (c *consumer) partition(ctx context.Context, records []*kgo.Record) (last *kgo.Record, err error) {
	for _, r := range records {
		if err := c.handle(ctx, received(r)); err != nil {
			return last, fmt.Errorf("record %s:%d:%d: %w", r.Topic, r.Partition, r.Offset, err)
		}
		last = r
	}
	return last, nil
}

// commit tells Kafka that these records and all before them are done; it commits
// the offset after each. A failure costs a second delivery and nothing else, for
// instance when the group has given our partitions away because we took too long.
func (c *consumer) commit(ctx context.Context, done []*kgo.Record) {
	if len(done) == 0 {
		return
	}
	// What has been handled is committed also when we are told to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := c.client.CommitRecords(ctx, done...); err != nil {
		log.Printf("offsets are not committed, some records will come again: %v", err)
	}
}

// close leaves the group, so that others take over at once. A process with a name
// (kgo.InstanceID) stays a member instead: the group waits for its return.
func (c *consumer) close() { c.client.CloseAllowingRebalance() }

// received is a record in the inbox's terms.
func received(r *kgo.Record) inbox.Record {
	headers := make([]inbox.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = inbox.Header{Key: h.Key, Value: h.Value}
	}
	return inbox.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Headers: headers}
}
