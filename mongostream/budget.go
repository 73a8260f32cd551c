package mongostream

import (
	"sync/atomic"

	"github.com/walrelay/walrelay/event"
)

// budget bounds the bytes in flight: answers of the server whose events are not all
// acknowledged yet. The size of an answer is known only once it is there, so the
// bound may be passed by one answer.
type budget struct {
	most int64
	used atomic.Int64
	// freed carries a token after an answer came back, for the one pump that may wait.
	freed chan struct{}
}

// room reports whether another answer may be asked for.
func (b *budget) room() bool {
	used := b.used.Load()
	return used == 0 || used+replyBytes <= b.most
}

// take counts an answer until its last user lets go.
func (b *budget) take(bytes int) *event.Memory {
	b.used.Add(int64(bytes))
	return event.NewMemory(func() {
		b.used.Add(-int64(bytes))
		select {
		case b.freed <- struct{}{}:
		default:
		}
	})
}
