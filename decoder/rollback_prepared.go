package decoder

import "github.com/walrelay/walrelay/event"

// RollbackPrepared takes back a prepared transaction.
type RollbackPrepared struct {
	// PrepareEndLSN is where the record of the PREPARE ends.
	PrepareEndLSN event.LSN
	// EndLSN is where the record of the rollback ends.
	EndLSN event.LSN
	// PrepareMicros and RollbackMicros are microseconds since 1970 UTC.
	PrepareMicros, RollbackMicros int64
	XID                           uint32
	// GID aliases the input.
	GID []byte
}

// Kind is KindRollbackPrepared.
func (*RollbackPrepared) Kind() Kind { return KindRollbackPrepared }

// read reads a Rollback Prepared:
//
//	+-----+---------+-----------------------+------------------------+
//	| 'r' | Int8(0) | Int64 prepare end LSN | Int64 rollback end LSN |
//	+-----+---------+------------+----------+----------+-------------+
//	| Int64 prepare time | Int64 rollback time | Int32 xid | String gid |
//	+--------------------+---------------------+-----------+------------+
func (m *RollbackPrepared) read(c *cursor) Message {
	c.unusedFlags()
	m.PrepareEndLSN = event.LSN(c.u64())
	m.EndLSN = event.LSN(c.u64())
	m.PrepareMicros = c.micros()
	m.RollbackMicros = c.micros()
	m.XID = c.u32()
	m.GID = c.str()
	return m
}
