package publish

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/walrelay/walrelay/event"
)

// miss notes whether the broker says that the topic does not exist (and that it may
// not be made), and offers what waits for it to the desk. A broker that cannot be
// asked says nothing about the topic.
func (t *topic) miss(missing bool) {
	t.missing.Store(missing)
	if !missing {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = t.offer(t.queue)
}

// refusedTopic says whether the answer means that the topic is not there, and will
// not be by waiting for the broker.
func refusedTopic(err error, creating bool) bool {
	if creating {
		var answer *kerr.Error
		return errors.As(err, &answer) && !answer.Retriable
	}
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// offer asks the desk, for one record after the other in their order, whether its
// source takes it back to try it again later. It answers those that go on waiting.
func (t *topic) offer(waiting []*item) []*item {
	if t.pub.opts.Desk == nil {
		return waiting
	}
	left := waiting[:0]
	for _, it := range waiting {
		if !t.takenBack(it) {
			left = append(left, it)
		}
	}
	clear(waiting[len(left):])
	return left
}

func (t *topic) takenBack(it *item) bool {
	why := &event.Error{
		Class: event.Retry, What: fmt.Sprintf("topic %s does not exist", t.name),
		Remedy: "create it, or set kafka.create_topics: true", Anchor: AnchorTopicMissing,
	}
	if t.pub.opts.Desk == nil || !t.pub.opts.Desk.Return(it.record(), it.ticket, why) {
		return false
	}
	t.pub.settle(it, why)
	return true
}

// takeBack is offer for a lane whose topic is gone: its records were refused because
// of that, and nothing of the lane is under way.
func (r *repair) takeBack() {
	r.todo = r.topic.offer(r.todo)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = r.topic.offer(r.queue)
}
