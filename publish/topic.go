package publish

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/walrelay/walrelay/event"
)

// topic is what is known of one topic, and the records that wait for it.
//
//	shape == nil:  unknown yet, missing, forbidden, or being re-cut: records wait in queue
//	shape != nil:  records go to the shape's lanes
type topic struct {
	pub  *Publisher
	name string

	shape  atomic.Pointer[shape]
	limits atomic.Pointer[limits]
	// batchCap bounds a batch of the main client, its length prefix included. franz-go
	// asks for it once per partition, so it is set once and stays.
	batchCap atomic.Int64
	// purges counts how often franz-go was made to forget the topic.
	purges atomic.Int64
	// missing: the broker knows no such topic, and will not by waiting.
	missing atomic.Bool
	// troubled counts lanes that wait for something to be put right.
	troubled atomic.Int32

	mu    sync.Mutex
	queue []*item

	// The rest belongs to the table's goroutine.
	next     time.Time // when to look at it again
	old      *shape    // being drained, to be replaced
	cut      int       // partitions of the shape to come
	reported bool      // the table has set a condition
	warned   map[string]bool
	inSync   map[int32]int // replicas in sync, by partition
	stalled  bool          // the condition "stalled/<name>" is set
}

// shape is the set of lanes that a topic's records spread over. It never changes;
// a topic that gets more partitions gets a new one, when the old is idle.
type shape struct {
	lanes []*lane
	// Records without an order stay on one lane for a while, so that batches fill.
	spread     atomic.Int32
	spreadLeft atomic.Int64 // bytes until the next change
}

// spreadBytes is how much goes to one lane before records without an order move on.
const spreadBytes = 64 << 10

func newShape(t *topic, partitions int) *shape {
	sh := &shape{lanes: make([]*lane, partitions)}
	for i := range sh.lanes {
		sh.lanes[i] = newLane(t, sh, int32(i))
	}
	return sh
}

// pick chooses the lane of a record.
func (sh *shape) pick(it *item) *lane {
	if !it.spread {
		return sh.lanes[it.hash%uint32(len(sh.lanes))]
	}
	if sh.spreadLeft.Add(-it.charged-1) < 0 {
		sh.spreadLeft.Store(spreadBytes)
		sh.spread.Store(sh.quietest())
	}
	return sh.lanes[sh.spread.Load()]
}

// quietest is the open lane with the least under way, from the current one onwards.
func (sh *shape) quietest() int32 {
	from := int(sh.spread.Load())
	best, least := from, int64(-1)
	for i := 1; i <= len(sh.lanes); i++ {
		at := (from + i) % len(sh.lanes)
		n := sh.lanes[at].inflight.Load()
		if !sh.lanes[at].held.Load() && (least < 0 || n < least) {
			best, least = at, n
		}
	}
	return int32(best)
}

func (sh *shape) idle() bool {
	for _, l := range sh.lanes {
		if !l.idle() {
			return false
		}
	}
	return true
}

// park makes an item wait for the topic. It answers false when the topic has a
// shape after all.
func (t *topic) park(it *item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shape.Load() != nil {
		return false
	}
	if t.pub.dead.Load() {
		t.pub.settle(it, errClosed())
		return true
	}
	// An earlier record that waits was refused by the desk; this one may be another source's.
	if t.missing.Load() && t.takenBack(it) {
		return true
	}
	t.queue = append(t.queue, it)
	return true
}

// open shows a shape, after what waited has gone into its lanes in order.
func (t *topic) open(sh *shape) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, it := range t.queue {
		t.pub.dispatch(t, sh, it, true)
	}
	clear(t.queue)
	t.queue = nil
	if !t.pub.dead.Load() {
		t.shape.Store(sh)
	}
}

// abandon gives what waits an error.
func (t *topic) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, it := range t.queue {
		t.pub.settle(it, errClosed())
	}
	t.queue = nil
}

// trouble and recovered count the lanes that cannot go on; the condition of the
// last failure stands until all of them can.
func (t *topic) trouble(first bool, c event.Condition) {
	if first {
		t.troubled.Add(1)
	}
	t.pub.obs.condition("topic/"+t.name, c)
}

func (t *topic) recovered() {
	if t.troubled.Add(-1) == 0 {
		t.pub.obs.condition("topic/"+t.name, event.Condition{})
	}
}

// legalTopic is Kafka's own rule (org.apache.kafka.common.internals.Topic).
func legalTopic(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > 249 {
		return false
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
