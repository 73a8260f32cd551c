package slot

import (
	"net"
	"time"
)

const (
	// spellWindow and spellBytes tell a busy spell from quiet times: so many bytes
	// came within one window. 2 MB/s are more than 1 000 ordinary events a second,
	// and little enough to be reached by a backlog on an overloaded machine.
	spellWindow = 10 * time.Millisecond
	spellBytes  = 20 << 10
	// gulpBytes is what the kernel gathers in a busy spell before it wakes the pump,
	// and gulpWait is how long less than that may lie there.
	gulpBytes = 64 << 10
	gulpWait  = 2 * time.Millisecond
)

// spell tells whether reading should be in gulps. A walsender sends each message
// by a system call of its own as long as there is room, and an eager reader is
// woken for each, and wakes the rest of the relay for each: that costs more than
// the message's whole way to Kafka, and slows the server down as well. In a busy
// spell the socket therefore counts as readable from gulpBytes on (SO_RCVLOWAT).
// In quiet times every message is read at once.
//
// The server's messages do not tell how far behind we are (a logical walsender
// sends the position of the change at hand), so the rate of bytes decides.
type spell struct {
	since time.Time // begin of the window
	bytes int       // that came in it
	busy  bool
}

// took counts what a read brought; nothing, when its time was up.
func (s *spell) took(n int, now time.Time) {
	if elapsed := now.Sub(s.since); elapsed >= spellWindow {
		s.busy = s.bytes >= spellBytes && elapsed < 2*spellWindow
		s.since, s.bytes = now, 0
	}
	s.bytes += n
}

// pace lets the kernel gather, or not; it returns how long a read may take.
func (w *wire) pace() time.Duration {
	if w.spell.busy != w.gulping {
		mark := 1
		if w.spell.busy {
			mark = gulpBytes
		}
		if !lowWaterMark(w.sess.conn, mark) {
			w.spell.busy = false
			return wake
		}
		w.gulping, w.deadline = w.spell.busy, time.Time{}
	}
	if w.gulping {
		return gulpWait
	}
	return wake
}

// lowWaterMark sets from how many bytes on the connection counts as readable;
// false where that cannot be said.
func lowWaterMark(c net.Conn, bytes int) bool {
	for {
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = wrapped.NetConn()
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	return err == nil && setLowWaterMark(raw, bytes) == nil
}
