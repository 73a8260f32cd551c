package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/walrelay/walrelay/event"
)

// topicFor finds the topic of an item. A record whose topic no broker can have
// goes to a place of its source's own, where only the poison policy waits.
func (p *Publisher) topicFor(it *item, name string) *topic {
	if t := p.last.Load(); t != nil && t.name == name {
		it.rec.Topic = t.name
		return t
	}
	t := (*p.topics.Load())[name]
	if t == nil {
		if !legalTopic(name) {
			if it.refused == nil {
				it.refused = illegalTopic(name)
			}
			it.rec.Topic = name // for people; it is never sent
			return p.nowhere(it.ticket.Source)
		}
		t = p.addTopic(name, nil)
	}
	p.last.Store(t)
	it.rec.Topic = t.name
	return t
}

// nowhere is the place of records without a usable topic, one per source.
func (p *Publisher) nowhere(source uint16) *topic {
	key := "\x00" + strconv.Itoa(int(source)) // no topic is called so
	if t := (*p.topics.Load())[key]; t != nil {
		return t
	}
	return p.addTopic(key, func(t *topic) {
		t.name = ""
		t.limits.Store(unlimited(time.Now()))
		t.batchCap.Store(int64(p.opts.BatchMaxBytes))
		t.shape.Store(newShape(t, 1))
	})
}

// addTopic enters a topic into the table, which readers see as a whole.
func (p *Publisher) addTopic(key string, prepare func(*topic)) *topic {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := *p.topics.Load()
	if t := before[key]; t != nil {
		return t
	}
	t := &topic{pub: p, name: key}
	if prepare != nil {
		prepare(t)
	}
	after := make(map[string]*topic, len(before)+1)
	maps.Copy(after, before)
	after[key] = t
	p.topics.Store(&after)
	wake(p.wake)
	return t
}

// tend is the table's goroutine: it looks at topics when they are due and shows
// a new shape when the old one is idle.
func (p *Publisher) tend() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		case <-timer.C:
		}
		var due []*topic
		now := time.Now()
		for _, t := range *p.topics.Load() {
			if t.old != nil && t.old.idle() {
				t.recut()
			}
			if t.name != "" && !t.next.After(now) {
				due = append(due, t)
			}
		}
		if len(due) > 0 || !p.mayProduce {
			p.look(due)
		}
		p.lookForStalls(now)
		next := now.Add(min(p.opts.RefreshEvery, unansweredFor/2))
		for _, t := range *p.topics.Load() {
			if t.name != "" && t.next.Before(next) {
				next = t.next
			}
		}
		timer.Reset(time.Until(next))
	}
}

// look reads what the broker says of the topics that are due.
func (p *Publisher) look(due []*topic) {
	ctx, cancel := context.WithTimeout(p.ctx, p.opts.RequestTimeout)
	defer cancel()
	names := make([]string, len(due))
	for i, t := range due {
		names[i] = t.name
	}
	all, err := map[string]*description(nil), error(nil)
	if !p.mayProduce {
		if err = probeProducer(ctx, p.main); err == nil {
			p.mayProduce = true
			p.obs.condition("kafka/producer", event.Condition{})
		}
	}
	if err == nil && len(names) > 0 {
		all, err = describe(ctx, p.main, names)
	}
	now := time.Now()
	for _, t := range due {
		t.next = now.Add(p.opts.MissingEvery)
		if err == nil && t.apply(ctx, all[t.name], now) {
			t.next = now.Add(p.opts.RefreshEvery)
		}
	}
	if err != nil && p.ctx.Err() == nil {
		p.obs.condition("kafka/producer", p.explain("", err))
		p.mayProduce = false // clears the condition when it is over
	}
}

// apply takes what the broker said; true when the topic is usable.
func (t *topic) apply(ctx context.Context, d *description, now time.Time) bool {
	p, creating := t.pub, false
	if errors.Is(d.err, kerr.UnknownTopicOrPartition) && p.opts.CreateTopics && t.shape.Load() == nil && t.old == nil {
		if err := createTopic(ctx, p.main, t.name, p.opts.Partitions, p.opts.Replication); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			d.err, creating = fmt.Errorf("creating topic %s: %w", t.name, err), true
		} else {
			wake(p.wake)
			t.next = now
			return false
		}
	}
	n := d.partitions
	if d.err == nil && n == 0 {
		d.err = kerr.LeaderNotAvailable
	}
	if d.err != nil {
		t.report(p.explain(t.name, d.err))
		t.miss(refusedTopic(d.err, creating))
		return false
	}
	t.miss(false)
	if pin, pinned := p.opts.PinPartitions[t.name]; pinned {
		if pin > n {
			t.report(event.Condition{
				What:   fmt.Sprintf("topic %s is pinned to %d partitions and has %d", t.name, pin, n),
				Remedy: "add partitions to the topic or lower the pin", Anchor: AnchorTopicConfig,
			})
			return false
		}
		n = pin
	}
	t.configure(d, now)
	t.inSync = d.inSync
	if t.reported {
		t.reported = false
		p.obs.condition("topic/"+t.name, event.Condition{})
	}
	switch sh := t.shape.Load(); {
	case t.old != nil: // being re-cut: to the newest count
		t.cut = n
	case sh == nil:
		t.open(newShape(t, n))
	case len(sh.lanes) != n:
		t.old, t.cut = sh, n
		t.shape.Store(nil)
		p.main.ForceMetadataRefresh()
		wake(p.wake)
	}
	return true
}

// recut shows the shape with the new number of partitions. Nothing of the old
// one is under way any more, so no key has records in two partitions at once.
func (t *topic) recut() {
	before, after := len(t.old.lanes), t.cut
	t.old = nil
	t.open(newShape(t, after))
	t.pub.obs.partitionsChanged(t.name, before, after)
}

func (t *topic) report(c event.Condition) {
	t.reported = true
	t.pub.obs.condition("topic/"+t.name, c)
}

// configure takes the topic's settings over and warns of weak ones.
func (t *topic) configure(d *description, now time.Time) {
	if d.configErr != nil {
		t.warn(fmt.Sprintf("its configuration may not be read (%v): size and time limits are the broker's to enforce; grant DescribeConfigs", d.configErr))
		if t.limits.Load() == nil {
			t.limits.Store(unlimited(now))
		}
	} else {
		t.limits.Store(newLimits(d.config, now))
	}
	lim := t.limits.Load()
	limit := int64(t.pub.opts.BatchMaxBytes)
	if lim.maxBytes > 0 {
		limit = min(limit, lim.maxBytes)
	}
	if !t.batchCap.CompareAndSwap(0, limit) && limit < t.batchCap.Load() {
		t.warn(fmt.Sprintf("max.message.bytes was lowered to %d below the batch size of %d in use: batches are cut anew at each refusal until a restart",
			lim.maxBytes, t.batchCap.Load()))
	}
	switch {
	case d.replication == 1:
		t.warn("replication factor is 1: an acknowledged event is lost with its broker")
	case lim.minISR == 1:
		t.warn("min.insync.replicas is 1: an event acknowledged by the leader alone is lost with it")
	}
}

func (t *topic) warn(what string) {
	if t.warned[what] {
		return
	}
	if t.warned == nil {
		t.warned = make(map[string]bool)
	}
	t.warned[what] = true
	t.pub.obs.topicWarning(t.name, what)
}
