package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
)

// Check looks at every precondition of publishing to the topics, without
// publishing anything. Findings come in the order of looking.
func Check(ctx context.Context, opts Options, topics []string) []event.Finding {
	c := &check{}
	if !c.look("kafka options", "complete and without contradiction", opts.Validate()) {
		return c.found
	}
	opts = opts.withDefaults()
	p := &Publisher{opts: opts}
	p.topics.Store(&map[string]*topic{})
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(nil)
	main, _, err := p.clientOptions()
	if !c.look("kafka TLS files", "readable", err) {
		return c.found
	}
	cl, err := kgo.NewClient(main...)
	if err == nil {
		defer cl.Close()
		err = keepsPromises(cl)
	}
	if !c.look("kafka client", "acks=all and idempotent", err) {
		return c.found
	}
	ctx, cancel := context.WithTimeout(ctx, opts.RequestTimeout)
	defer cancel()
	if err := cl.Ping(ctx); err != nil {
		c.condition("kafka brokers", "reachable and authenticated", p, "", err)
		return c.found
	}
	c.ok("kafka brokers", fmt.Sprintf("%v answer %s", opts.Brokers, opts.SASL.principal(opts.TLS)), "reachable and authenticated")
	if err := probeProducer(ctx, cl); err != nil {
		c.condition("kafka idempotent producer", "allowed", p, "", err)
	} else {
		c.ok("kafka idempotent producer", "allowed", "allowed")
	}
	if opts.OnPoison == PoisonDLQ {
		topics = append(append([]string(nil), topics...), opts.DLQTopic)
	}
	c.topics(ctx, p, cl, topics)
	return c.found
}

type check struct{ found []event.Finding }

func (c *check) ok(setting, is, needs string) {
	c.found = append(c.found, event.Fine(setting, is, needs))
}

// warn notes what works, but not as it should.
func (c *check) warn(setting, is, needs, remedy string) {
	c.found = append(c.found, event.Warned(setting, is, needs, remedy))
}

func (c *check) bad(setting, is, needs, remedy string) {
	c.found = append(c.found, event.Finding{Setting: setting, Is: is, Needs: needs, Remedy: remedy})
}

func (c *check) condition(setting, needs string, p *Publisher, topic string, err error) {
	cond := p.explain(topic, err)
	c.bad(setting, cond.What, needs, cond.Remedy)
}

func (c *check) look(setting, needs string, err error) bool {
	if err == nil {
		c.ok(setting, needs, needs)
		return true
	}
	is, remedy := err.Error(), ""
	var e *event.Error
	if errors.As(err, &e) {
		remedy = e.Remedy
		plain := *e
		plain.Remedy = ""
		is = plain.Error()
	}
	c.bad(setting, is, needs, remedy)
	return false
}

func (c *check) topics(ctx context.Context, p *Publisher, cl *kgo.Client, topics []string) {
	var legal []string
	for _, name := range topics {
		if legalTopic(name) {
			legal = append(legal, name)
		} else {
			c.bad("topic "+name, "not a legal name", "1 to 249 letters, digits, dots, underscores or hyphens", "correct the route")
		}
	}
	if len(legal) == 0 {
		return
	}
	all, err := describe(ctx, cl, legal)
	if err != nil {
		c.condition("kafka topics", "described by the broker", p, "", err)
		return
	}
	for _, name := range legal {
		c.topic(p, name, all[name])
	}
}

func (c *check) topic(p *Publisher, name string, d *description) {
	setting := "topic " + name
	who := p.opts.SASL.principal(p.opts.TLS)
	switch pin := p.opts.PinPartitions[name]; {
	case d.err != nil:
		c.condition(setting, "exists and may be written", p, name, d.err)
		return
	case !d.mayWrite:
		c.bad(setting, who+" may not write", "Write", fmt.Sprintf("grant Write on topic %s to %s", name, who))
		return
	case pin > d.partitions:
		c.bad(setting, fmt.Sprintf("%d partitions", d.partitions), fmt.Sprintf("at least %d, the pinned count", pin), "add partitions or lower the pin")
		return
	}
	c.ok(setting, fmt.Sprintf("%d partitions", d.partitions), "exists and may be written")
	if d.configErr != nil {
		c.warn(setting+" configuration", d.configErr.Error(), "readable, so that limits are known before sending",
			fmt.Sprintf("grant DescribeConfigs on topic %s to %s (works without)", name, who))
		return
	}
	c.ok(setting+" max.message.bytes", d.config["max.message.bytes"], "at least the largest event")
	if d.replication == 1 {
		c.warn(setting+" replication factor", "1", "3", "an acknowledged event is lost with its broker: raise it unless this is a test")
	} else if isr := d.config["min.insync.replicas"]; isr == "1" {
		c.warn(setting+" min.insync.replicas", isr, "2", "an event acknowledged by the leader alone is lost with it: raise it unless this is a test")
	}
}
