package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// reader takes all that is in both topics into the account.
type reader struct {
	client  *kgo.Client
	stop    context.CancelFunc
	ended   chan struct{}
	changed chan struct{} // carries a token after records were taken

	mu   sync.Mutex
	next map[string]map[int32]int64 // by topic and partition: the offset after the last record taken
}

func newReader(brokers string, a *account) (*reader, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.ConsumeTopics(ordersTopic, paymentsTopic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &reader{
		client: client, stop: stop, ended: make(chan struct{}), changed: make(chan struct{}, 1),
		next: map[string]map[int32]int64{ordersTopic: {}, paymentsTopic: {}},
	}
	go func() {
		defer close(r.ended)
		for ctx.Err() == nil {
			client.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
				a.add(factOf(rec))
				r.mu.Lock()
				r.next[rec.Topic][rec.Partition] = rec.Offset + 1
				r.mu.Unlock()
			})
			select {
			case r.changed <- struct{}{}:
			default:
			}
		}
	}()
	return r, nil
}

func (r *reader) close() {
	r.stop()
	<-r.ended
	r.client.Close()
}

// until waits until done says so, or until one of the processes has ended.
func (r *reader) until(ctx context.Context, done func() bool, needed ...*process) error {
	for !done() {
		for _, p := range needed {
			if !p.Running() {
				return errors.Join(fmt.Errorf("%s ended by itself", p.name), p.ended())
			}
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// drain takes all that is in the topics now.
func (r *reader) drain(ctx context.Context) error {
	ends, err := kadm.NewClient(r.client).ListEndOffsets(ctx, ordersTopic, paymentsTopic)
	if err != nil {
		return fmt.Errorf("asking where the topics end: %w", err)
	}
	return r.until(ctx, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		reached := true
		ends.Each(func(o kadm.ListedOffset) { reached = reached && r.next[o.Topic][o.Partition] >= o.Offset })
		return reached
	})
}
