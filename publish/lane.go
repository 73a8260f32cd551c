package publish

import (
	"sync"
	"sync/atomic"
	"time"
)

// lane is one partition of one topic, and the order of its records.
//
//	open:  Publish hands records to franz-go itself
//	held:  records wait in queue; the worker (repair.go) is alone with franz-go
//
// inflight counts the records of the lane inside franz-go, and those of which
// Publish is about to decide. The worker touches anything only while it is zero.
type lane struct {
	topic *topic
	shape *shape
	part  int32

	inflight atomic.Int64
	held     atomic.Bool
	// broken is set from the first failure until the worker takes over.
	broken atomic.Bool
	// buffered and resolved count what franz-go took into the partition and what it
	// decided: resolved ≤ buffered. See item.Done.
	buffered, resolved atomic.Uint64
	// watched asks for a word in progress (capacity 1) whenever resolved moves.
	watched  atomic.Bool
	progress chan struct{}

	// When resolved was last seen to move, and where: the table's goroutine's.
	movedTo uint64
	movedAt time.Time

	signal chan struct{} // to the worker; capacity 1
	purged int64         // topic.purges as the worker last saw it; the worker's

	mu     sync.Mutex
	failed []*item // in order; all of them before those in queue
	cause  error   // of the first in failed
	queue  []*item
}

func newLane(t *topic, sh *shape, part int32) *lane {
	return &lane{topic: t, shape: sh, part: part, signal: make(chan struct{}, 1), progress: make(chan struct{}, 1)}
}

// enter counts one record in if the lane is open and not retired. The caller then
// owes leave. filling: see park.
func (l *lane) enter(filling bool) bool {
	l.inflight.Add(1)
	if !l.held.Load() && (filling || l.topic.shape.Load() == l.shape) {
		return true
	}
	l.leave()
	return false
}

// leave counts one record out, and wakes whoever waits for none to be left.
func (l *lane) leave() {
	if l.inflight.Add(-1) > 0 {
		return
	}
	if l.held.Load() {
		wake(l.signal)
	}
	if l.topic.shape.Load() != l.shape {
		wake(l.topic.pub.wake)
	}
}

// park puts an item into the lane's queue. It answers false when the lane is open
// after all (and the item needs no worker) or retired: try again. filling says
// that the shape is being filled before it is shown.
func (l *lane) park(it *item, filling bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !filling && l.topic.shape.Load() != l.shape {
		return false
	}
	if !l.held.Load() && it.refused == nil && !it.wide && !it.waits {
		return false
	}
	if l.topic.pub.dead.Load() || !l.held.Load() && !l.holdLocked() {
		l.topic.pub.settle(it, errClosed())
		return true
	}
	l.queue = append(l.queue, it)
	wake(l.signal)
	return true
}

// fail takes a record that franz-go gave back with an error.
func (l *lane) fail(it *item, err error) {
	l.mu.Lock()
	l.broken.Store(true)
	if l.topic.pub.dead.Load() || !l.held.Load() && !l.holdLocked() {
		l.mu.Unlock()
		l.topic.pub.settle(it, errClosed())
		return
	}
	if len(l.failed) == 0 {
		l.cause = err
	}
	l.failed = append(l.failed, it)
	l.mu.Unlock()
}

// holdLocked starts the worker; false when the publisher is closed.
func (l *lane) holdLocked() bool {
	if !l.topic.pub.start(l.work) {
		return false
	}
	l.held.Store(true)
	return true
}

// idle says that nothing of the lane is under way or waiting.
func (l *lane) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.held.Load() && l.inflight.Load() == 0
}

// resolve counts one decision of franz-go's about the lane.
func (l *lane) resolve() {
	l.resolved.Add(1)
	if l.watched.Load() {
		wake(l.progress)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
