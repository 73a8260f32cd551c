package slot

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/walrelay/walrelay/event"
)

const (
	// settleEvery is the shortest time between two markers: it bounds what a crash
	// repeats against what the marker costs the database.
	settleEvery = 100 * time.Millisecond
	// idleStride is how far the log of others moves on before an idle relay follows.
	// Each marker is itself a little log: without a stride the relay would follow itself for ever.
	idleStride = 1 << 20
	// heavyLog is how much retained log makes the stride too long. The server lets go
	// of log only when a second snapshot record behind it is confirmed, and after a
	// burst those records are small and rare.
	heavyLog = 16 << 20
	// callTimeout bounds one statement of the keeper.
	callTimeout = 5 * time.Second
)

// keep is the keeper: it owns an ordinary connection and lets no position
// through to the server before two things are certain:
//
//   - the publication is still the one that the session began with. Otherwise the
//     log may have passed rows that it did not show us (Postgres 18 says nothing),
//
//   - the marker has it, so that the next process can tell a slot that we moved
//     from one that somebody else moved:
//
//     slot.confirmed ≤ marker.confirmed, except for the end of the log at a shutdown
func (s *Stream) keep(ctx context.Context) {
	defer close(s.final)
	k := keeper{s: s, bo: backoff{min: s.opt.ReconnectMin, max: s.opt.ReconnectMax}}
	defer k.hangUp()
	for {
		if s.obs.KeeperBeat != nil {
			s.obs.KeeperBeat()
		}
		closing := s.closing.Load()
		if k.connected(ctx) {
			k.inspect(ctx)
			k.settle(ctx, closing)
		} else {
			k.settleUnwritten()
		}
		if closing || ctx.Err() != nil {
			return
		}
		k.wait(ctx)
	}
}

type keeper struct {
	s    *Stream
	conn *pgx.Conn
	bo   backoff

	nextConnect time.Time
	nextInspect time.Time
	lastSettle  time.Time
	lostSince   time.Time
	pending     bool // a position waits for settleEvery to pass
	heavy       bool // the slot holds much log back: follow the server without a stride
}

func (k *keeper) connected(ctx context.Context) bool {
	if k.conn != nil && !k.conn.IsClosed() {
		return true
	}
	now := time.Now()
	if now.Before(k.nextConnect) {
		return false
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := connectKeeper(callCtx, k.s.opt)
	if err != nil {
		k.lost(now, err)
		return false
	}
	k.conn = conn
	k.bo.reset()
	k.lostSince = time.Time{}
	k.s.serverStopping.Store(0)
	k.warn("control", event.Condition{})
	return true
}

// connectKeeper opens a connection whose waits end the moment their context
// does: the keeper is woken that way, and has no statement that must be
// cancelled on the server.
func connectKeeper(ctx context.Context, opt Options) (*pgx.Conn, error) {
	cfg, err := opt.ConnConfig()
	if err != nil {
		return nil, err
	}
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	return pgx.ConnectConfig(ctx, cfg)
}

// lost notes that the ordinary connection cannot be had. While the replication
// connection lives, a server that lets nobody in is one that shuts down.
func (k *keeper) lost(now time.Time, err error) {
	if k.lostSince.IsZero() {
		k.lostSince = now
	}
	k.nextConnect = now.Add(k.bo.wait())
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "57P03" || errors.Is(err, syscall.ECONNREFUSED) {
		k.s.serverStopping.CompareAndSwap(0, now.UnixNano())
	}
	if now.Sub(k.lostSince) > 10*time.Second {
		k.warn("control", event.Condition{
			What:   fmt.Sprintf("no ordinary connection to Postgres since %s: %v", k.lostSince.UTC().Format(time.RFC3339), Classify(err)),
			Remedy: "positions are not confirmed meanwhile; check connection limits and the server's log",
			Anchor: "control-connection",
		})
	}
}

func (k *keeper) hangUp() {
	if k.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = k.conn.Close(ctx)
}

func (k *keeper) warn(key string, c event.Condition) {
	if k.s.obs.Warning != nil {
		k.s.obs.Warning(key, c)
	}
}

// inspect looks at the slot and the publication on a timer.
func (k *keeper) inspect(ctx context.Context) {
	now := time.Now()
	if k.s.began.Swap(false) {
		// A second for the walsender to say where it is, then look.
		k.nextInspect = now.Add(min(time.Second, k.s.opt.CheckInterval))
	}
	if now.Before(k.nextInspect) || k.s.closing.Load() {
		return
	}
	k.nextInspect = now.Add(k.s.opt.CheckInterval)
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if report, err := ReadSlot(callCtx, k.conn, k.s.opt.Slot); err == nil {
		k.s.advanceServer(report.ServerHead)
		k.heavy = report.RetainedBytes >= heavyLog
		if k.s.obs.Slot != nil {
			k.s.obs.Slot(report)
		}
	}
	if !k.s.streaming.Load() {
		return
	}
	if err := k.s.checkPublication(callCtx, k.conn); err != nil && event.ClassOf(err) == event.Halt && callCtx.Err() == nil {
		k.s.abort(err)
	}
}

// settle lets the safe position through: publication checked, marker written.
func (k *keeper) settle(ctx context.Context, closing bool) {
	k.pending = false
	safe, settled := k.s.safe.Load(), k.s.settled.Load()
	urgent := k.s.replyAsked.Swap(false) || closing || k.heavy
	k.heavy = false
	if safe <= settled {
		return
	}
	idle := k.s.lastEvent.Load() <= settled
	if !urgent {
		if idle && safe-settled < idleStride {
			return
		}
		if wait := settleEvery - time.Since(k.lastSettle); wait > 0 {
			k.pending = true
			return
		}
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := k.s.checkPublication(callCtx, k.conn)
	if err == nil {
		err = k.s.mark(callCtx, k.conn, event.LSN(safe))
	}
	k.lastSettle = time.Now()
	switch {
	case err == nil:
		k.s.settled.Store(safe)
		k.warn("marker", event.Condition{})
	case event.ClassOf(err) == event.Halt && callCtx.Err() == nil:
		k.s.abort(err)
	case k.conn.IsClosed():
		// The connection broke: the next step makes it anew, and says so if it cannot.
		k.pending = true
		k.settleUnwritten()
	default:
		k.pending = true
		k.warn("marker", event.Condition{
			What:   fmt.Sprintf("the marker in %s cannot be written: %v", k.s.opt.Bookkeeping, err),
			Remedy: "positions are not confirmed meanwhile; see that the relay's role may write there and that the database is not read-only",
			Anchor: "marker",
		})
	}
}

// settleUnwritten is for a server that shuts down: it waits for its end of the
// log to be confirmed and takes no statement any more. That end, and no place
// before it, is confirmed without a marker once everything is acknowledged: the next
// start knows it by the shutdown checkpoint that stands there. A place before the end would
// look like a slot that somebody else moved.
func (k *keeper) settleUnwritten() {
	s := k.s
	safe := s.safe.Load()
	if s.serverStopping.Load() != 0 && s.insists.Load() && safe >= s.received.Load() {
		s.settled.Store(max(safe, s.settled.Load()))
	}
}

// wait sleeps until there is something to do. It listens on the connection
// meanwhile: a server that shuts down says so there first.
func (k *keeper) wait(ctx context.Context) {
	limit := time.Second
	if k.pending {
		limit = settleEvery
	}
	waitCtx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if k.conn == nil || k.conn.IsClosed() {
		limit = min(limit, max(time.Until(k.nextConnect), 10*time.Millisecond))
		select {
		case <-k.s.keeperWake:
			// No hurry without a connection: the next attempt has its time.
			if k.s.closing.Load() {
				return
			}
			<-time.After(min(limit, 50*time.Millisecond))
		case <-time.After(limit):
		case <-ctx.Done():
		}
		return
	}
	stop := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-k.s.keeperWake:
			cancel()
		case <-stop:
		}
	}()
	_, err := k.conn.WaitForNotification(waitCtx)
	close(stop)
	<-ended
	if err != nil && waitCtx.Err() == nil {
		// The connection broke under the wait: find out at once why.
		k.nextConnect = time.Time{}
	}
}
