package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// reader is the consumer: it prints and counts what arrives.
type reader struct {
	client  *kgo.Client
	tally   *tally
	p       *printer
	stop    context.CancelFunc
	ended   chan struct{}
	changed chan struct{} // carries a token after records were taken

	mu   sync.Mutex
	next map[int32]int64 // by partition: the offset after the last record taken
	err  error
}

// newReader starts to consume from the beginning of the topic; close ends it.
func newReader(brokers []string, t *tally, p *printer) (*reader, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(time.Second),
	)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &reader{
		client: client, tally: t, p: p, stop: stop, ended: make(chan struct{}), changed: make(chan struct{}, 1),
		next: map[int32]int64{},
	}
	go r.consume(ctx)
	return r, nil
}

func (r *reader) close() {
	r.stop()
	<-r.ended
	r.client.Close()
}

func (r *reader) consume(ctx context.Context) {
	defer close(r.ended)
	for ctx.Err() == nil {
		fetches := r.client.PollFetches(ctx)
		now := time.Now()
		fetches.EachRecord(func(rec *kgo.Record) { r.take(rec, now) })
		r.mu.Lock()
		for _, e := range fetches.Errors() {
			if !errors.Is(e.Err, context.Canceled) {
				r.err = e.Err
			}
		}
		r.mu.Unlock()
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}
}

func (r *reader) take(rec *kgo.Record, now time.Time) {
	a := arrival{
		key: string(rec.Key), payload: string(rec.Value), partition: rec.Partition, offset: rec.Offset, at: now,
	}
	for _, h := range rec.Headers {
		switch h.Key {
		case "forze_event_id":
			a.id = string(h.Value)
		case "forze_type":
			a.kind = string(h.Value)
		}
	}
	var body struct{ N int }
	if err := json.Unmarshal(rec.Value, &body); err != nil {
		a.kind += " (unreadable)"
	}
	a.n = body.N
	took, remark := r.tally.take(a)
	r.p.event(a, took, remark)
	r.mu.Lock()
	r.next[rec.Partition] = rec.Offset + 1
	r.mu.Unlock()
}

// until waits until done says so. It gives up without an error when the time is
// over, since the tally then says what is missing.
func (r *reader) until(done func() bool, within time.Duration, relayEnded <-chan struct{}) error {
	deadline := time.After(within)
	for {
		r.mu.Lock()
		err := r.err
		r.mu.Unlock()
		switch {
		case err != nil:
			return fmt.Errorf("consuming: %w", err)
		case done():
			return nil
		}
		select {
		case <-r.changed:
		case <-relayEnded:
			return errors.New("walrelay ended by itself")
		case <-deadline:
			return nil
		}
	}
}

// drain takes all that is in the topic.
func (r *reader) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ends, err := kadm.NewClient(r.client).ListEndOffsets(ctx, topic)
	if err != nil {
		return fmt.Errorf("asking where the topic ends: %w", err)
	}
	atEnd := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for partition, end := range ends[topic] {
			if r.next[partition] < end.Offset {
				return false
			}
		}
		return true
	}
	if err := r.until(atEnd, 10*time.Second, nil); err != nil {
		return err
	}
	if !atEnd() {
		return errors.New("the consumer did not get to the end of the topic")
	}
	return nil
}
