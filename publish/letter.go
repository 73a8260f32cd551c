package publish

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
)

// letter is the context of a dead letter; the partitioner finds the hash there.
type letter struct {
	context.Context
	hash uint32
}

// deadLetter sends an event to the dead-letter topic and waits until it is
// acknowledged. It tries for as long as it takes; an error is [ErrClosed], or
// says why the letter itself can never be published.
func (p *Publisher) deadLetter(from *topic, it *item, why error) error {
	select {
	case p.letters <- struct{}{}:
		defer func() { <-p.letters }()
	case <-p.ctx.Done():
		return ErrClosed
	}
	to := p.addTopic(p.opts.DLQTopic, nil)
	for to.limits.Load() == nil { // the table says what is amiss
		if !p.pause(backoffBase) {
			return ErrClosed
		}
	}
	rec := p.newLetter(from, to, it, why)
	troubled := false
	for attempt := 1; ; attempt++ {
		err := p.post(rec)
		class, _ := classify(err)
		switch {
		case err == nil:
			if troubled {
				to.recovered()
			}
			return nil
		case closedByUs(err) || p.dead.Load():
			return ErrClosed
		case class != event.Retry:
			if troubled {
				to.recovered()
			}
			return err
		case errors.Is(err, kerr.UnknownTopicID):
			p.wide.PurgeTopicsFromProducing(to.name)
		}
		to.trouble(!troubled, p.explain(to.name, err))
		troubled = true
		if !p.pause(backoff(attempt)) {
			return ErrClosed
		}
		p.wide.ForceMetadataRefresh()
	}
}

// post sends one letter, alone in its batch, and waits for the result.
func (p *Publisher) post(rec *kgo.Record) error {
	done := make(chan error, 1)
	p.wide.Produce(context.Background(), rec, func(_ *kgo.Record, err error) { done <- err })
	return <-done // closing the client ends it at the latest
}

// newLetter makes the dead letter: the record as it would have been, and headers
// that say why it is here. A value that does not fit is left out, and that is said.
func (p *Publisher) newLetter(from, to *topic, it *item, why error) *kgo.Record {
	size, limit := batchSize(&it.rec), int64(0)
	if lim := from.limits.Load(); lim != nil {
		limit = lim.maxBytes
	}
	rec := &kgo.Record{
		Topic: to.name, Key: it.rec.Key, Value: it.rec.Value, Timestamp: time.UnixMilli(it.fallback),
		Context: &letter{context.Background(), it.hash},
	}
	rec.Headers = append(rec.Headers, it.rec.Headers...)
	header := func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: "walrelay_dlq_" + name, Value: []byte(value)})
	}
	header("reason", why.Error())
	header("topic", from.name)
	header("source", it.origin.Source)
	header("relation", it.origin.Relation)
	header("position", fmt.Sprintf("%s/%d", it.origin.Commit, it.origin.Ordinal))
	header("size", strconv.FormatInt(size, 10))
	if limit > 0 {
		header("limit", strconv.FormatInt(limit, 10))
	}
	toLimit := to.limits.Load()
	if !toLimit.takes(it.fallback) {
		rec.Timestamp = time.Now()
	}
	if n := batchSize(rec); n > maxWideBytes || toLimit.maxBytes > 0 && n > toLimit.maxBytes {
		header("value_omitted", strconv.Itoa(len(rec.Value)))
		rec.Value = nil
	}
	return rec
}
