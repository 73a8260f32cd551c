package postgres

// lockClass is the first half of the advisory lock's key: "wlr1".
const lockClass = "2003595825"

// inClaim is the first statement of a claim that writes, and afterClaims of whatever
// must not come before the end of one: a look at what holds keys, and the reclaim of what a
// dead holder, or a lost answer, left behind. A claim whose client is gone goes on in the server
// to its end; without the barrier it could take rows after somebody had looked for them, and
// later rows of their keys would pass. The next statement has a snapshot of its own, which
// sees what the claims did. The locks go with the transaction, also through a pooler.
func (t *Table) inClaim() statement { return t.barrier("pg_advisory_xact_lock_shared") }

func (t *Table) afterClaims() statement { return t.barrier("pg_advisory_xact_lock") }

func (t *Table) barrier(lock string) statement {
	return statement{
		sql:  "SELECT pg_catalog." + lock + "(" + lockClass + ", pg_catalog.hashtext($1::pg_catalog.text))",
		args: [][]byte{text(t.db.o.Owner)},
	}
}
