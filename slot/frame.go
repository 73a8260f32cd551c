package slot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// Frames of the replication stream (PostgreSQL documentation, "Streaming
// Replication Protocol" and "Message Formats"). All integers are big-endian.
//
//	CopyData      'd' int32 length (with itself) | payload
//	  XLogData    'w' int64 start | int64 server's end | int64 time | message
//	  keepalive   'k' int64 end   | int64 time         | byte reply requested
//	  status  ->  'r' int64 write | int64 flush | int64 apply | int64 time | byte reply requested
const (
	frameHeader    = 5
	xlogHeader     = 1 + 8 + 8 + 8
	keepaliveSize  = 1 + 8 + 8 + 1
	statusSize     = 1 + 8 + 8 + 8 + 8 + 1
	msgCopyData    = 'd'
	msgCopyDone    = 'c'
	msgError       = 'E'
	msgNotice      = 'N'
	msgReady       = 'Z'
	kindXLogData   = 'w'
	kindKeepalive  = 'k'
	kindStatus     = 'r'
	pgEpochMicros  = 946_684_800_000_000 // 2000-01-01 in microseconds since 1970
	maxFrameLength = 1 << 30             // MaxAllocSize of the server bounds every message
)

var errFrame = errors.New("the server sent a frame that is no protocol message")

// frameSize is the whole size of the frame that begins at b, or 0 when b is too
// short to tell.
func frameSize(b []byte) (int, error) {
	if len(b) < frameHeader {
		return 0, nil
	}
	n := binary.BigEndian.Uint32(b[1:])
	if n < 4 || n > maxFrameLength {
		return 0, fmt.Errorf("%w: kind %q, length %d", errFrame, b[0], n)
	}
	return 1 + int(n), nil
}

func lsnAt(b []byte) event.LSN { return event.LSN(binary.BigEndian.Uint64(b)) }

func microsAt(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) + pgEpochMicros }

// keepalive is a primary keepalive message.
type keepalive struct {
	end   event.LSN
	reply bool
}

func parseKeepalive(payload []byte) (keepalive, error) {
	if len(payload) != keepaliveSize {
		return keepalive{}, fmt.Errorf("%w: keepalive of %d bytes, want %d", errFrame, len(payload), keepaliveSize)
	}
	return keepalive{end: lsnAt(payload[1:]), reply: payload[17] != 0}, nil
}

// appendStatus appends a standby status update. write is what was received,
// flush is what may be forgotten by the server; apply says the same as flush.
func appendStatus(dst []byte, write, flush event.LSN, unixMicros int64, reply bool) []byte {
	dst = append(dst, msgCopyData)
	dst = binary.BigEndian.AppendUint32(dst, 4+statusSize)
	dst = append(dst, kindStatus)
	dst = binary.BigEndian.AppendUint64(dst, uint64(write))
	dst = binary.BigEndian.AppendUint64(dst, uint64(flush))
	dst = binary.BigEndian.AppendUint64(dst, uint64(flush))
	dst = binary.BigEndian.AppendUint64(dst, uint64(unixMicros-pgEpochMicros))
	if reply {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// edge follows the transaction boundaries in the frames that pass, without
// decoding them: enough to know from where a broken connection can be taken up
// again, and whether a keepalive's position may be used.
type edge struct {
	inTx bool
	// received is the end of the last complete transaction, or the position of the
	// last keepalive outside of one.
	received event.LSN
}

// message looks at a pgoutput message that stands behind an XLogData header.
func (e *edge) message(m []byte) {
	switch {
	case len(m) == 0:
	case m[0] == 'B':
		e.inTx = true
	case m[0] == 'C' && len(m) >= 1+1+8+8:
		// Commit: flags, LSN of the commit record, end of the transaction.
		e.inTx = false
		e.received = max(e.received, lsnAt(m[10:]))
	case m[0] == 'M' && len(m) >= 1+1+8 && m[1]&1 == 0 && !e.inTx:
		// A message outside of any transaction is complete at its own LSN.
		e.received = max(e.received, lsnAt(m[2:]))
	}
}

func (e *edge) keepalive(end event.LSN) {
	if !e.inTx {
		e.received = max(e.received, end)
	}
}
