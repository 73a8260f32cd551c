package decoder

import "github.com/walrelay/walrelay/event"

// Origin follows a Begin or a Stream Start when the transaction was itself
// replicated from elsewhere. There may be several in one transaction.
type Origin struct {
	// CommitLSN is that of the commit on the origin server.
	CommitLSN event.LSN
	// Name aliases the input.
	Name []byte
}

// Kind is KindOrigin.
func (*Origin) Kind() Kind { return KindOrigin }

// read reads an Origin, which has no xid even inside a streamed block:
//
//	+-----+------------------+-------------+
//	| 'O' | Int64 commit LSN | String name |
//	+-----+------------------+-------------+
func (m *Origin) read(c *cursor) Message {
	m.CommitLSN = event.LSN(c.u64())
	m.Name = c.str()
	return m
}
