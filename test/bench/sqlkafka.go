package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaVariable names brokers and a topic, with a blank between: what the bare loop
// takes it then publishes too, through franz-go as it comes, before it settles. That is the least that a
// relay of this kind costs.
const kafkaVariable = "BENCH_SQL_KAFKA"

// producer publishes rows as a forze relay does; nil publishes nothing.
type producer struct {
	client *kgo.Client
	failed error
}

func newProducer() (*producer, error) {
	brokers, topic, given := strings.Cut(os.Getenv(kafkaVariable), " ")
	if !given {
		return nil, nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.DefaultProduceTopic(topic),
		kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(1<<20))
	return &producer{client: client}, err
}

// Places of a row's values in an answer of take.
const (
	atEvent, atKey, atType, atPayload, atOccurred, atHLC = 2, 4, 5, 6, 7, 13
)

// publish takes a row. The values belong to the connection: they are copied, all at once.
func (p *producer) publish(v [][]byte) {
	all := make([]byte, 0, 1024)
	keep := func(i int) []byte {
		from := len(all)
		all = append(all, v[i]...)
		return all[from:len(all):len(all)]
	}
	p.client.Produce(context.Background(), &kgo.Record{Key: keep(atKey), Value: keep(atPayload), Headers: []kgo.RecordHeader{
		{Key: "forze_event_id", Value: keep(atEvent)},
		{Key: "forze_type", Value: keep(atType)},
		{Key: "forze_occurred_at", Value: keep(atOccurred)},
		{Key: "forze_hlc", Value: keep(atHLC)},
	}}, func(_ *kgo.Record, err error) {
		if err != nil {
			p.failed = err // the promises of one client are called one after another
		}
	})
}

// flush waits until all that was taken is acknowledged.
func (p *producer) flush(ctx context.Context) error {
	if err := p.client.Flush(ctx); err != nil {
		return err
	}
	if p.failed != nil {
		return fmt.Errorf("publishing: %w", p.failed)
	}
	return nil
}
