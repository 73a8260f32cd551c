package postgres

import (
	"context"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Pending takes a snapshot of rows that are pending and due, and then reads the end of the log.
//
// Two statements, in this order: what the first one sees was committed before
// it, and so lies in the log below the position that the second one reads.
func (t *Table) Pending(ctx context.Context, req outbox.Request) (ids []string, at event.Position, err error) {
	req.Limit = max(1, req.Limit)
	req.Only, req.Except = nil, nil
	var end event.LSN
	s := t.pendingIDs(&req)
	s.row = func(v [][]byte) error { ids = append(ids, string(v[0])); return nil }
	err = t.db.transact(ctx, "looking for pending rows of "+t.Relation(), append(t.pinned(s), statement{
		sql: "select pg_catalog.pg_current_wal_insert_lsn()",
		row: func(v [][]byte) (err error) { end, err = event.ParseLSN(string(v[0])); return err },
	})...)
	return ids, event.AtLSN(lastEnd(end, t.l.walBlock, t.l.walSegment)), err
}

func (t *Table) pendingIDs(req *outbox.Request) statement {
	q := &query{}
	if nothing(req.Shards) {
		req.Shards = outbox.Shards{}
		req.Limit = 0
	}
	wanted := q.wanted(t.l, req)
	n := q.arg(number(req.Limit)) + "::pg_catalog.int8"
	if !t.l.states() {
		return statement{args: q.args, formats: q.formats, sql: t.sql("SELECT t.{id} FROM {table} t WHERE " + t.l.isPending() + wanted + " ORDER BY " + t.l.order() + " LIMIT " + n)}
	}
	h, o := t.l.handle(), t.l.ranks()
	return statement{args: q.args, formats: q.formats, sql: t.sql("WITH RECURSIVE " + routes + strings.Join([]string{
		"\nSELECT c." + h.names[0] + " ", t.l.perRoute(h.selected()+", "+o.selected(), "pending", t.l.dueKinds(), wanted, n), " ORDER BY ", o.of("c"), " LIMIT ", n,
	}, ""))}
}

// Page headers of the log, in bytes: of any page, and of a segment's first
// (SizeOfXLogShortPHD and SizeOfXLogLongPHD in xlog_internal.h).
const (
	shortPageHeader = 24
	longPageHeader  = 40
)

// lastEnd is where the last record ends when the next one begins at insert. At a page's
// end the server names the place behind the next page's header, where no record can end: a
// stream that waits for it would wait until something else is written. Any other place is the end itself.
func lastEnd(insert event.LSN, block, segment uint64) event.LSN {
	if block == 0 || segment == 0 {
		return insert
	}
	header := uint64(shortPageHeader)
	if uint64(insert)%segment < block {
		header = longPageHeader
	}
	if uint64(insert)%block == header {
		return insert - event.LSN(header)
	}
	return insert
}
