package postgres

import (
	"strconv"

	"github.com/walrelay/walrelay/outbox"
)

// A claim goes on in the server when its client is gone, and may begin late. So that
// nobody looks for what it took before it took it, a claim holds a lock of its holder's, shared and to
// the end of its transaction, and takes nothing unless the shards are its holder's then:
//
//	claim:      lock shared → the leases are mine → take
//	take over:  not while anybody has the lock of him who had the lease; then the lease is mine → reclaim → look
//
// A claim is either over when somebody takes over, and what it took is seen, or it takes
// nothing. After a claim without an answer its own holder waits for the lock before he looks.
// The lock is an advisory one, which goes with the transaction, also through a pooler. Nobody but
// the holder's own calls, and whoever takes over from him, meets in it.
const claimKey = "pg_catalog.hashtextextended('walrelay claims ' || $1::pg_catalog.text || ' ' || "

// guarded says whether the shards are held by leases.
func (t *Table) guarded(s outbox.Shards) bool { return s.Holder != "" && s.Of > 0 }

// inClaim is the first statement of a claim that writes. The next one has a snapshot of its own,
// taken under the lock.
func (t *Table) inClaim(s outbox.Shards) []statement {
	return t.claimLock("pg_advisory_xact_lock_shared", s)
}

// afterClaims is the first statement of what must not miss a claim of the same holder.
func (t *Table) afterClaims(s outbox.Shards) []statement {
	return t.claimLock("pg_advisory_xact_lock", s)
}

func (t *Table) claimLock(lock string, s outbox.Shards) []statement {
	if !t.guarded(s) {
		return nil
	}
	return []statement{{
		sql:  "SELECT pg_catalog." + lock + "(" + claimKey + "$2::pg_catalog.text, 0))",
		args: [][]byte{text(t.db.o.Owner), text(s.Holder)},
	}}
}

// stillHeld is the condition that all the shards are still held under their leases, for
// a statement that has no rows of its own to test; empty where there are none.
func (q *query) stillHeld(t *Table, s outbox.Shards) string {
	if !t.guarded(s) {
		return ""
	}
	units := make([]string, len(s.Own))
	for i, n := range s.Own {
		units[i] = shardPrefix(s.Of) + strconv.Itoa(n)
	}
	return " WHERE (SELECT pg_catalog.count(*) FROM " + t.db.Leases().table + " x WHERE x.owner = " + q.arg(text(t.db.o.Owner)) + "::pg_catalog.text AND x.holder = " +
		q.arg(text(s.Holder)) + "::pg_catalog.text AND x.unit = ANY (" + q.arg(array(units)) + "::pg_catalog.text[]) AND x.expires_at > pg_catalog.clock_timestamp()) = " +
		q.arg(number(len(s.Own))) + "::pg_catalog.int8"
}
