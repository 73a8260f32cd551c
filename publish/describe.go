package publish

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// description is what the broker says of one topic.
type description struct {
	err         error // why the topic cannot be used now
	partitions  int
	replication int
	inSync      map[int32]int // replicas in sync, by partition
	mayWrite    bool          // as far as the broker tells
	config      map[string]string
	configErr   error // why config is nil
}

// readConfigs are the settings that matter to a producer.
var readConfigs = []string{
	"max.message.bytes", "message.timestamp.type", "message.timestamp.difference.max.ms",
	"message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "min.insync.replicas",
}

// describe asks about topics. The requests are made by hand, not through kadm,
// because there one forbidden topic hides the answers about all others.
func describe(ctx context.Context, cl *kgo.Client, names []string) (map[string]*description, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*description, len(names))
	var found []string
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic == nil {
			continue
		}
		d := &description{err: kerr.ErrorForCode(t.ErrorCode), mayWrite: mayWrite(t.AuthorizedOperations)}
		all[*t.Topic] = d
		if d.err != nil {
			continue
		}
		d.partitions = len(t.Partitions)
		d.inSync = make(map[int32]int, len(t.Partitions))
		for _, p := range t.Partitions {
			d.inSync[p.Partition] = len(p.ISR)
			if n := len(p.Replicas); d.replication == 0 || n < d.replication {
				d.replication = n
			}
		}
		found = append(found, *t.Topic)
	}
	for _, name := range names {
		if all[name] == nil {
			all[name] = &description{err: kerr.UnknownTopicOrPartition}
		}
	}
	if len(found) > 0 {
		describeConfigs(ctx, cl, found, all)
	}
	return all, nil
}

// mayWrite reads the bits of KIP-430; a broker that does not send them is not held against the topic.
func mayWrite(operations int32) bool {
	const unknown = -2147483648
	if operations == unknown || operations == 0 {
		return true
	}
	bit := func(op kmsg.ACLOperation) bool { return operations&(1<<uint(op)) != 0 }
	return bit(kmsg.ACLOperationWrite) || bit(kmsg.ACLOperationAll)
}

func describeConfigs(ctx context.Context, cl *kgo.Client, names []string, into map[string]*description) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, name := range names {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, name, readConfigs
		req.Resources = append(req.Resources, r)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		for _, name := range names {
			into[name].configErr = err
		}
		return
	}
	for _, r := range resp.Resources {
		d := into[r.ResourceName]
		if d == nil {
			continue
		}
		if d.configErr = kerr.ErrorForCode(r.ErrorCode); d.configErr != nil {
			continue
		}
		d.config = make(map[string]string, len(r.Configs))
		for _, c := range r.Configs {
			if c.Value != nil {
				d.config[c.Name] = *c.Value
			}
		}
	}
	for _, name := range names {
		if d := into[name]; d.config == nil && d.configErr == nil {
			d.configErr = fmt.Errorf("the broker did not describe topic %s", name)
		}
	}
}

// createTopic makes a topic with the broker's own settings.
func createTopic(ctx context.Context, cl *kgo.Client, name string, partitions int32, replication int16) error {
	resp, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, replication, nil, name)
	if err != nil {
		return err
	}
	return resp.Err
}

// probeProducer asks for a producer id, as the first produce will. The answer is
// thrown away: inside franz-go a refusal at that point would be final, and a
// broker that knows no producer ids would quietly end idempotence.
func probeProducer(ctx context.Context, cl *kgo.Client) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}
