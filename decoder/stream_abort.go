package decoder

import "github.com/walrelay/walrelay/event"

// StreamAbort takes back a streamed transaction, or one subtransaction of it.
//
// Only the changes of SubXID are void: a rollback to a savepoint must not take
// the rest of the transaction along. Postgres 18 sends it also where nothing was
// streamed; there it is void of meaning.
type StreamAbort struct {
	XID uint32
	// SubXID equals XID when the whole transaction is aborted.
	SubXID uint32
	// AbortLSN and AbortMicros are zero unless Options.Parallel.
	AbortLSN    event.LSN
	AbortMicros int64
}

// Kind is KindStreamAbort.
func (*StreamAbort) Kind() Kind { return KindStreamAbort }

// read reads a Stream Abort:
//
//	+-----+-----------+--------------+-------------------+--------------------+
//	| 'A' | Int32 xid | Int32 subxid | Int64 abort LSN * | Int64 abort time * |
//	+-----+-----------+--------------+-------------------+--------------------+
//	* with streaming 'parallel' (protocol 4) only
func (m *StreamAbort) read(c *cursor, d *Decoder) Message {
	m.XID = c.u32()
	m.SubXID = c.u32()
	if d.parallel {
		m.AbortLSN = event.LSN(c.u64())
		m.AbortMicros = c.micros()
	}
	return m
}
