package publish

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// recordTries is how often franz-go itself sends a batch that the broker answers
// with a retriable error, before it gives the records back. Bounded, because
// franz-go does not tell the reason while it tries; what comes back is sent again
// for as long as it takes, with the reason shown. Far above any election, because
// a batch that a leader wrote before it died in silence may be among those given
// back, and would then be there twice: franz-go's own tries repeat a sequence
// number that the brokers know, a new record does not. These are some three minutes.
const recordTries = 40

// metadataMinAge is how soon franz-go may ask again after a partition moved.
const metadataMinAge = time.Second

// clientOptions builds the options of both clients. The main one carries all that
// fits into a batch; the wide one single records up to maxWideBytes, and dead letters.
func (p *Publisher) clientOptions() (main, wide []kgo.Opt, err error) {
	o := &p.opts
	compression, err := codec(o.Compression)
	if err != nil {
		return nil, nil, err
	}
	dial, err := dialer(o, &p.obs)
	if err != nil {
		return nil, nil, err
	}
	always := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...),
		kgo.ClientID(o.ClientID),
		kgo.Dialer(dial),
		kgo.MinVersions(kversion.V1_0_0()),
		kgo.RequestTimeoutOverhead(o.RequestTimeout),
		kgo.ProduceRequestTimeout(o.RequestTimeout),
		kgo.MetadataMaxAge(o.RefreshEvery),
		kgo.MetadataMinAge(min(o.RefreshEvery, metadataMinAge)),
		kgo.DisableClientMetrics(),

		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordRetries(recordTries),
		kgo.RecordDeliveryTimeout(0),
		kgo.UnknownTopicRetries(-1),
		kgo.RecordPartitioner(partitioner{}),
		kgo.ProducerBatchCompression(compression),
		kgo.WithHooks(&hooks{p: p}),
		// The bounds are ours (budget); franz-go's only have to lie above them.
		kgo.MaxBufferedRecords(2*o.MaxInFlightRecords + 1024),
		kgo.MaxBufferedBytes(1 << 40),
	}
	if m := o.SASL.mechanism(o); m != nil {
		always = append(always, kgo.SASL(m))
	}
	main = append(append([]kgo.Opt{}, o.Extra...), always...)
	main = append(main, kgo.ProducerLinger(o.Linger), kgo.ProducerBatchMaxBytesFn(p.batchCap))
	wide = append(append([]kgo.Opt{}, always...),
		kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(maxWideBytes), kgo.BrokerMaxWriteBytes(maxWideWriteBytes))
	return main, wide, nil
}

// batchCap answers franz-go, once per partition, how large a batch may become.
func (p *Publisher) batchCap(name string) int32 {
	if t := (*p.topics.Load())[name]; t != nil {
		if limit := t.batchCap.Load(); limit > 0 {
			return int32(limit)
		}
	}
	return p.opts.BatchMaxBytes
}

// keepsPromises refuses extra options that would lower what the package promises
// and that no later option can undo.
func keepsPromises(cl *kgo.Client) error {
	for _, forbidden := range []struct {
		name string
		opt  any
	}{
		{"DisableIdempotentWrite", kgo.DisableIdempotentWrite},
		{"AllowIdempotentProduceCancellation", kgo.AllowIdempotentProduceCancellation},
		{"ManualFlushing", kgo.ManualFlushing},
		{"AllowAutoTopicCreation", kgo.AllowAutoTopicCreation},
		{"StopProducerOnDataLossDetected", kgo.StopProducerOnDataLossDetected},
		{"DefaultProduceTopicAlways", kgo.DefaultProduceTopicAlways},
	} {
		if on, _ := cl.OptValue(forbidden.opt).(bool); on {
			return usage("option "+forbidden.name+" is not compatible with publishing in order and without loss", "remove it")
		}
	}
	if id, _ := cl.OptValue(kgo.TransactionalID).(string); id != "" {
		return usage("option TransactionalID is not supported", "remove it")
	}
	if acks, _ := cl.OptValue(kgo.RequiredAcks).(kgo.Acks); acks != kgo.AllISRAcks() {
		return usage("acks are not all", "remove the option")
	}
	return nil
}
