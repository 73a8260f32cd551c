package cases

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// forzeInsert writes rows of $1 event ids, $2 payloads and $3 keys, in this order.
const forzeInsert = `insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
	select gen_random_uuid(), e, 'orders', 'Tested', 'pending', now(), now(), p::jsonb, k
	from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality as u(e, p, k, n) order by n`

// ledger is the application of a case: it writes outbox rows, one transaction at
// a time, and notes what it committed for the oracle.
type ledger struct {
	h *rig.House
	// insert is the statement that writes rows; see forzeInsert.
	insert string
	// pad is added to each payload, in bytes; the values are then not compared.
	pad int

	mu struct {
		sync.Mutex
		conn    *pgx.Conn
		seq     int64
		commits []oracle.Commit
		// lsn[i] is a place in the log after the rows of commits[i] were written and
		// before they were committed: confirmed > lsn means that the event is confirmed.
		lsn []event.LSN
	}
}

func newLedger(h *rig.House) *ledger { return &ledger{h: h, insert: forzeInsert} }

// txn is one transaction of the ledger.
type txn struct {
	t    testing.TB
	l    *ledger
	tx   pgx.Tx
	rows []oracle.Commit
}

// transaction runs body in a transaction and commits it.
func (l *ledger) transaction(t testing.TB, body func(*txn)) {
	t.Helper()
	l.attempt(t, func(x *txn) bool {
		body(x)
		return true
	})
}

// attempt commits if body says so, else rolls back and notes nothing.
func (l *ledger) attempt(t testing.TB, body func(*txn) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connectLocked(t)
	tx, err := l.mu.conn.Begin(ctx)
	if err != nil && l.mu.conn.IsClosed() { // the server was restarted meanwhile
		l.connectLocked(t)
		tx, err = l.mu.conn.Begin(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	x := &txn{t: t, l: l, tx: tx}
	if !body(x) {
		return
	}
	var text string
	if err := tx.QueryRow(ctx, "select pg_current_wal_insert_lsn()::text").Scan(&text); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range x.rows {
		l.mu.commits = append(l.mu.commits, c)
		l.mu.lsn = append(l.mu.lsn, parseLSN(t, text))
	}
}

func (l *ledger) connectLocked(t testing.TB) {
	t.Helper()
	if l.mu.conn == nil || l.mu.conn.IsClosed() {
		l.mu.conn = l.h.PG.Conn(t, l.h.Database)
	}
}

// exec runs a statement in the transaction.
func (x *txn) exec(sql string, args ...any) {
	x.t.Helper()
	if _, err := x.tx.Exec(context.Background(), sql, args...); err != nil {
		x.t.Fatalf("%s: %v", sql, err)
	}
}

// write writes one row per key, and returns their event ids.
func (x *txn) write(keys ...string) []string {
	x.t.Helper()
	ids, payloads := make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		c := x.expect(uuid.NewString(), key)
		ids[i], payloads[i] = c.EventID, string(c.Value)
		if x.l.pad > 0 {
			payloads[i] = fmt.Sprintf(`{"n": %d, "pad": %q}`, c.Seq, strings.Repeat("x", x.l.pad))
			x.rows[len(x.rows)-1].Value = nil
		}
	}
	x.exec(x.l.insert, ids, payloads, keys)
	return ids
}

// expect notes an event that the test writes itself with exec. Value is its
// payload unless the test puts another one there.
func (x *txn) expect(id, key string) *oracle.Commit {
	x.l.mu.seq++
	x.rows = append(x.rows, oracle.Commit{
		EventID: id, Route: "orders", Key: key, Seq: x.l.mu.seq, Value: fmt.Appendf(nil, `{"n": %d}`, x.l.mu.seq),
	})
	return &x.rows[len(x.rows)-1]
}

// write commits one transaction with one row per key, and returns their event ids.
func (l *ledger) write(t testing.TB, keys ...string) (ids []string) {
	t.Helper()
	l.transaction(t, func(x *txn) { ids = x.write(keys...) })
	return ids
}

// writeMany commits n rows over 50 keys in transactions of the given size.
func (l *ledger) writeMany(t testing.TB, n, perTransaction int) {
	t.Helper()
	for done := 0; done < n; {
		size := min(perTransaction, n-done)
		l.transaction(t, func(x *txn) {
			const perStatement = 1000
			for i := 0; i < size; i += perStatement {
				x.write(fiftyKeys(done+i, min(perStatement, size-i))...)
			}
		})
		done += size
	}
}

// keepWriting commits small transactions, one every interval, until stop is
// called or the test ends.
func (l *ledger) keepWriting(t testing.TB, every time.Duration) (stop func()) {
	t.Helper()
	l.mu.Lock()
	l.connectLocked(t) // now: it must outlive the writer
	l.mu.Unlock()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 0; ; n += 3 {
			select {
			case <-quit:
				return
			case <-tick.C:
				l.write(t, fiftyKeys(n, 1+n%5)...)
			}
		}
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() { close(quit) })
		<-done
	}
	t.Cleanup(stop)
	return stop
}

func fiftyKeys(from, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("key %d", (from+i)%50)
	}
	return keys
}

// committed is what was committed so far.
func (l *ledger) committed() []oracle.Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]oracle.Commit(nil), l.mu.commits...)
}

// floor is a place in the log that lies behind the first row written after n
// events, and before its commit: nothing above it may be confirmed while that
// event is not acknowledged.
func (l *ledger) floor(n int) event.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.lsn[n]
}

// unconfirmed counts the events committed so far that a confirmed position does not cover.
func (l *ledger) unconfirmed(confirmed event.LSN) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, lsn := range l.mu.lsn {
		if lsn >= confirmed {
			n++
		}
	}
	return n
}

// drained waits until the slot has confirmed all that was committed: the relay
// then says that it has caught up.
func (l *ledger) drained(t testing.TB, limit time.Duration) {
	t.Helper()
	l.mu.Lock()
	var last event.LSN
	if n := len(l.mu.lsn); n > 0 {
		last = l.mu.lsn[n-1]
	}
	l.mu.Unlock()
	// On a server with other tests, one of theirs may have committed between the
	// place and our commit: one more settling of the relay's, and it is certain.
	var since time.Time
	rig.Eventually(t, "the confirmation of all that was committed", limit, func() error {
		confirmed := parseLSN(t, l.h.ReadSlot(t).Confirmed)
		switch {
		case confirmed <= last:
			return fmt.Errorf("confirmed is %s, the last event was committed after %s", confirmed, last)
		case since.IsZero():
			since = time.Now()
			return errNothingYet
		case time.Since(since) < 300*time.Millisecond:
			return errNothingYet
		}
		return nil
	})
}

// judge holds records against what was committed: none lost, at most so many
// duplicates, every key in order, nothing that was not committed.
func (l *ledger) judge(t testing.TB, records []*kgo.Record, maxDuplicates int) oracle.Verdict {
	t.Helper()
	return oracle.Require(t, l.committed(), records, maxDuplicates)
}

func parseLSN(t testing.TB, text string) event.LSN {
	t.Helper()
	lsn, err := event.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return lsn
}
