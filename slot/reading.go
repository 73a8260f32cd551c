package slot

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
)

// Clock reads the server's clock against its log, again and again, on a connection
// of its own. It is for one goroutine.
type Clock struct {
	opt  Options
	conn *pgx.Conn
}

// NewClock prepares a clock; nothing is connected yet.
func NewClock(o Options) *Clock { return &Clock{opt: o} }

// Read takes a reading. The order of its statements is what it is worth:
//
//	clock  <  open transactions  <  prepared ones  <  end of the log
//
// A transaction that is not seen open began after the clock was read, or has its commit
// below the end of the log; one that changes from open to prepared meanwhile is seen
// twice rather than not at all. In one statement the order would be the planner's.
//
// A session tells the statistics of its transaction a moment after it took the time
// that the transaction is said to have begun at, so that the beginning seen here may be late
// by that moment: Bounds.Staged of package reorder covers it.
func (c *Clock) Read(ctx context.Context) (event.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := c.read(ctx)
	if err != nil {
		c.Close(ctx)
		return event.Reading{}, Classify(err, c.opt.scene("reading the server's clock"))
	}
	return r, nil
}

func (c *Clock) read(ctx context.Context) (r event.Reading, err error) {
	if c.conn == nil || c.conn.IsClosed() {
		if c.conn, err = Connect(ctx, c.opt); err != nil {
			return r, err
		}
	}
	var now, oldest time.Time
	if err = c.conn.QueryRow(ctx, `select pg_catalog.clock_timestamp()`).Scan(&now); err != nil {
		return r, err
	}
	var began *time.Time
	var hidden bool
	if err = c.conn.QueryRow(ctx, openTransactions, c.opt.Producers).Scan(&began, &hidden); err != nil {
		return r, err
	}
	var prepared bool
	if err = c.conn.QueryRow(ctx, preparedTransactions, c.opt.Producers).Scan(&prepared); err != nil {
		return r, err
	}
	end, err := LogEnd(ctx, c.conn)
	if err != nil {
		return r, err
	}
	r.NowMicros, r.At = now.UnixMicro(), event.AtLSN(end)
	// When a prepared transaction began is kept nowhere.
	if !hidden && !prepared {
		oldest = now
		if began != nil && began.Before(now) {
			oldest = *began
		}
		r.OldestMicros = oldest.UnixMicro()
	}
	return r, nil
}

// Close ends the connection; the next reading makes another.
func (c *Clock) Close(ctx context.Context) {
	if c.conn != nil {
		_ = c.conn.Close(context.WithoutCancel(ctx))
		c.conn = nil
	}
}

// openTransactions are those of this database that could write an event: not those of
// walsenders and vacuum, nor this one. Of another role's sessions a role without
// pg_read_all_stats sees that they are there, and not what they do; nor does anybody where
// track_activities is off.
const openTransactions = `
	select pg_catalog.min(a.xact_start),
	       coalesce(pg_catalog.bool_or(not pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') and not pg_catalog.pg_has_role(a.usesysid, 'USAGE')
	                or a.state = 'disabled'), false)
	  from pg_catalog.pg_stat_activity a
	 where a.datname = pg_catalog.current_database() and a.pid <> pg_catalog.pg_backend_pid()
	   and coalesce(a.backend_type, '') not in ('walsender', 'autovacuum worker')
	   and (coalesce(pg_catalog.cardinality($1::text[]), 0) = 0 or a.usename = any ($1::text[]))`

const preparedTransactions = `
	select exists (select from pg_catalog.pg_prepared_xacts p where p.database = pg_catalog.current_database()
	   and (coalesce(pg_catalog.cardinality($1::text[]), 0) = 0 or p.owner = any ($1::text[])))`

// hiddenRoles asks whether there is a role that may write events and whose transactions
// could not be seen.
const hiddenRoles = `
	select not pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') and (coalesce(pg_catalog.cardinality($1::text[]), 0) = 0 or exists (
	  select from pg_catalog.pg_roles r where r.rolname = any ($1::text[]) and not pg_catalog.pg_has_role(r.oid, 'USAGE')))`

// visibilityFinding says whether the beginning of every open transaction can be seen.
func visibilityFinding(ctx context.Context, conn *pgx.Conn, o Options, role string) event.Finding {
	const setting, needs = "open transactions", "seen, for order: hlc"
	var began *time.Time
	var hidden bool
	if err := conn.QueryRow(ctx, openTransactions, o.Producers).Scan(&began, &hidden); err != nil {
		return event.Explained(setting, "cannot be read", needs, asError(Classify(err, o.scene("reading the open transactions"))))
	}
	if !hidden {
		// The roles that write may not be connected at the moment.
		if err := conn.QueryRow(ctx, hiddenRoles, o.Producers).Scan(&hidden); err != nil {
			return event.Explained(setting, "cannot be read", needs, asError(Classify(err, o.scene("reading the role's rights"))))
		}
	}
	if hidden {
		return event.Warned(setting, "those of other roles are hidden", needs,
			fmt.Sprintf("GRANT pg_read_all_stats TO %s, and leave track_activities on; until then each event waits for order.transaction", QuoteIdent(role)))
	}
	return event.Fine(setting, "can be seen", needs)
}
