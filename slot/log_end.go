package slot

import (
	"context"

	"github.com/walrelay/walrelay/event"
)

// LogEnd is where the last record of the log ends now: everything that is committed
// lies at or below. The server names the place where the next record begins, which
// at a page's end is behind the next page's header, where no record can end; a relay that
// confirms all there is would never be seen to get there.
func LogEnd(ctx context.Context, db DB) (event.LSN, error) {
	var text string
	var page, segment int64
	err := db.QueryRow(ctx, `select pg_catalog.pg_current_wal_insert_lsn()::text,
		(select setting::int8 from pg_catalog.pg_settings where name = 'wal_block_size'),
		pg_catalog.pg_size_bytes(pg_catalog.current_setting('wal_segment_size'))`).Scan(&text, &page, &segment)
	if err != nil {
		return 0, Classify(err, Scene{Doing: "reading the end of the log"})
	}
	end, err := event.ParseLSN(text)
	if err != nil {
		return 0, err
	}
	return beforeHeader(end, uint64(page), uint64(segment)), nil
}

// shortPageHeader is the header of a page that is not a segment's first (SizeOfXLogShortPHD
// in xlog_internal.h).
const shortPageHeader = 24

func beforeHeader(at event.LSN, page, segment uint64) event.LSN {
	if page == 0 || segment == 0 {
		return at
	}
	header := uint64(shortPageHeader)
	if uint64(at)%segment < page {
		header = longPageHeader
	}
	if uint64(at)%page == header {
		return at - event.LSN(header)
	}
	return at
}

// PushLog writes so much log that a relay which is idle follows: it does so in strides
// (see idleStride), since what it writes to remember its position is log too. It costs the
// database one transaction of that size, which no outbox knows of.
func PushLog(ctx context.Context, db DB) error {
	_, err := db.Exec(ctx, `select pg_catalog.pg_logical_emit_message(true, 'walrelay.push', pg_catalog.repeat(' ', $1::int))`, idleStride)
	if err != nil {
		return Classify(err, Scene{Doing: "pushing an idle log on"})
	}
	return nil
}
