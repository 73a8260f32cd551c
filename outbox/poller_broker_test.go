package outbox_test

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// broker is a topic with partitions that several processes write to.
type broker struct {
	mu      sync.Mutex
	log     []delivery
	missing map[string]bool // topics
	poison  map[string]bool // row ids
}

type delivery struct {
	key, id string
	at      time.Time
	by      string // the process
}

func newBroker() *broker { return &broker{missing: map[string]bool{}, poison: map[string]bool{}} }

func (b *broker) change(f func(*broker)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

// ids are the deliveries in order; of one key, or of all.
func (b *broker) ids(key string) (ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.log {
		if key == "" || d.key == key {
			ids = append(ids, d.id)
		}
	}
	return ids
}

func (b *broker) times(id string) (at []time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.log {
		if d.id == id {
			at = append(at, d.at)
		}
	}
	return at
}

// inversions counts deliveries of a key whose first delivery came after a later row's first.
func inversions(b *broker) (n int) { return len(inverted(b)) }

// inverted lists the keys of such deliveries.
func inverted(b *broker) (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := map[string]string{}
	seen := map[string]bool{}
	for _, d := range b.log {
		if seen[d.id] {
			continue
		}
		seen[d.id] = true
		if d.id < last[d.key] {
			keys = append(keys, d.key)
		}
		last[d.key] = max(last[d.key], d.id)
	}
	return keys
}

// history is what came of a key, for people.
func (b *broker) history(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var s strings.Builder
	for _, d := range b.log {
		if d.key == key {
			fmt.Fprintf(&s, "%s %s by %s\n", d.at.Format("15:04:05.000000"), d.id, d.by)
		}
	}
	return s.String()
}
