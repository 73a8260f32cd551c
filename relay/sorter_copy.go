package relay

import (
	"sync"

	"github.com/walrelay/walrelay/event"
)

const (
	// copySize is the size of the pieces that records are copied into.
	copySize = 256 << 10
	// maxIdle bounds what is kept for later, of pieces (in copySize) and of records.
	maxIdle       = 4096
	maxIdleBytes  = 8 << 20
	headersAtOnce = 512
)

// copies is memory for records that wait. Pieces go back when the last record in them is
// settled.
type copies struct {
	piece   *piece
	headers []event.Header

	mu   sync.Mutex
	idle []*piece
}

type piece struct {
	buf []byte
	mem event.Memory
}

// holdLocked copies a record; the bytes are its ticket's Memory's.
func (s *sorter) holdLocked(rec *event.Record) *parcel {
	var h *parcel
	if n := len(s.idle); n > 0 {
		h, s.idle = s.idle[n-1], s.idle[:n-1]
	} else {
		h = &parcel{}
	}
	headers := h.rec.Headers[:0] // of a record before
	h.rec = *rec
	buf, mem := s.memory.take(recordSize(rec))
	h.ticket.Memory = mem
	keep := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		at := len(buf)
		buf = append(buf, b...)
		return buf[at:len(buf):len(buf)]
	}
	h.rec.Key, h.rec.Value = keep(rec.Key), keep(rec.Value)
	h.rec.Origin.EventID, h.rec.Origin.Row, h.rec.Origin.Route = keep(rec.Origin.EventID), keep(rec.Origin.Row), keep(rec.Origin.Route)
	if n := len(rec.Headers) + 1; cap(headers) < n { // one more: walrelay_late
		headers = s.memory.room(n)
	}
	h.rec.Headers = headers
	for _, header := range rec.Headers {
		h.rec.Headers = append(h.rec.Headers, event.Header{Key: header.Key, Value: keep(header.Value)})
	}
	return h
}

func recordSize(rec *event.Record) int {
	n := len(rec.Key) + len(rec.Value) + len(rec.Origin.EventID) + len(rec.Origin.Row) + len(rec.Origin.Route)
	for i := range rec.Headers {
		n += len(rec.Headers[i].Value)
	}
	return n
}

// take gives room for n bytes (length 0), and a Memory that the caller is a user of.
func (c *copies) take(n int) ([]byte, *event.Memory) {
	if n > copySize/4 {
		return make([]byte, 0, n), event.NewMemory(nil)
	}
	if c.piece == nil || cap(c.piece.buf)-len(c.piece.buf) < n {
		if c.piece != nil {
			c.piece.mem.Release() // ours
		}
		c.piece = c.fresh()
	}
	p := c.piece
	at := len(p.buf)
	p.buf = p.buf[:at+n]
	p.mem.Retain(1)
	return p.buf[at : at : at+n], &p.mem
}

func (c *copies) fresh() *piece {
	c.mu.Lock()
	defer c.mu.Unlock()
	var p *piece
	if n := len(c.idle); n > 0 {
		p, c.idle = c.idle[n-1], c.idle[:n-1]
	} else {
		p = &piece{buf: make([]byte, 0, copySize)}
	}
	p.buf = p.buf[:0]
	p.mem.Reset(func() { c.put(p) })
	return p
}

func (c *copies) put(p *piece) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) < maxIdleBytes/copySize {
		c.idle = append(c.idle, p)
	}
}

// room gives headers of length 0 with room for n.
func (c *copies) room(n int) []event.Header {
	if len(c.headers) < n {
		c.headers = make([]event.Header, max(n, headersAtOnce))
	}
	h := c.headers[:0:n]
	c.headers = c.headers[n:]
	return h
}
