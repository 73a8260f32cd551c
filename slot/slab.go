package slot

import (
	"sync"

	"github.com/walrelay/walrelay/event"
)

// slabSize is what the socket is read into at a time. Large enough that a frame
// seldom straddles two slabs, small enough that one waiting event pins little.
const slabSize = 256 << 10

// slab is memory that frames are read into and that events alias. Several
// chunks share one slab; it goes back to its pool when the pump and every chunk
// and event have let go (mem counts them).
type slab struct {
	buf  []byte // its whole capacity
	n    int    // filled by the pump, buf[:n] never changes again
	mem  event.Memory
	free func()
}

// slabPool bounds the bytes in flight: what was read from the socket and whose
// events are not all acknowledged yet.
//
//	used = sum of len(buf) of slabs given out ≤ budget, or one slab alone
type slabPool struct {
	budget int64
	// freed carries a token after a slab came back, for the one pump that may wait.
	freed chan struct{}

	mu struct {
		sync.Mutex
		used int64
		idle []*slab // of slabSize each
	}
}

func newSlabPool(budget int64) *slabPool {
	return &slabPool{budget: budget, freed: make(chan struct{}, 1)}
}

// get gives out a slab of at least size bytes with one user, or nil when the
// budget does not allow it now.
func (p *slabPool) get(size int) *slab {
	size = max(size, slabSize)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.used > 0 && p.mu.used+int64(size) > p.budget {
		return nil
	}
	p.mu.used += int64(size)
	var s *slab
	if last := len(p.mu.idle) - 1; size == slabSize && last >= 0 {
		s = p.mu.idle[last]
		p.mu.idle = p.mu.idle[:last]
	} else {
		s = &slab{buf: make([]byte, size)}
		s.free = func() { p.put(s) }
	}
	s.n = 0
	s.mem.Reset(s.free)
	return s
}

func (p *slabPool) put(s *slab) {
	p.mu.Lock()
	p.mu.used -= int64(len(s.buf))
	if len(s.buf) == slabSize { // a giant is left to the garbage collector
		p.mu.idle = append(p.mu.idle, s)
	}
	p.mu.Unlock()
	select {
	case p.freed <- struct{}{}:
	default:
	}
}

// used is the number of bytes given out.
func (p *slabPool) used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.used
}
