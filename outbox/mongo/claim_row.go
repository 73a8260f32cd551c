package mongo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// mostTries is how often a claim looks again whose rows somebody else took in the moment
// between its look and its write. Each time somebody got rows; who is so unlucky may as well come back.
const mostTries = 16

// claimRows takes rows in three commands: it looks for the first that are free, writes a token of its own
// into those that are free still (each document is tested and written at once, so each has one taker),
// and reads back those that have the token.
//
// Where the answer to the write is lost nothing is known: the claim fails, and the rows are found by the time
// at which they were claimed ([outbox.Reclaim]). That a write goes on when its client is gone must not surprise
// who looks then: its end is awaited, and one that the server has not begun in time takes nothing.
func (t *Table) claimRows(ctx context.Context, c *driver.Collection, req *outbox.Request, claim *outbox.Claim) error {
	for range mostTries {
		free, err := t.l.find(ctx, c, t.l.stretches(req), req.Limit, append(t.l.fields(), is("now", "$$NOW")))
		if err != nil || len(free) == 0 {
			return err
		}
		ids := make(bson.A, len(free))
		for i := range free {
			ids[i] = free[i].doc.Lookup(fieldID)
		}
		token := newToken()
		looked, _ := free[0].doc.Lookup("now").TimeOK()
		taken, err := t.take(ctx, c, t.l.isFree(ids, looked), token)
		switch {
		case err != nil:
			return err
		case taken.ModifiedCount > 0:
			return t.readClaim(ctx, c, ids, token, claim)
		case req.Only != nil:
			return nil
		}
	}
	return nil
}

// newToken is the name of a claim: as long as those that the application's own poller writes.
func newToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// readClaim reads the rows that have the token, by their ids.
func (t *Table) readClaim(ctx context.Context, c *driver.Collection, ids bson.A, token string, claim *outbox.Claim) error {
	mine := bson.D{in(fieldID, ids), is(fieldClaimToken, token), is(t.l.column(event.Status), processing)}
	rows, err := t.l.find(ctx, safely(c), []stretch{{filter: mine, hint: byID, all: true}}, len(ids), nil)
	if err != nil || len(rows) == 0 {
		return err
	}
	var first time.Time // the clock of the server ticks while it writes
	for i := range rows {
		if at, ok := rows[i].doc.Lookup(fieldProcessingAt).TimeOK(); ok && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	claim.Fence = fenceOf(first, token)
	claim.Rows, err = t.rows(slices.Grow(claim.Rows, len(rows)), rows)
	return err
}
