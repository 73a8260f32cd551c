package mongo

import (
	"strings"
	"time"

	"github.com/walrelay/walrelay/outbox"
)

// A fence is the moment of the claim and its token:
//
//	2026-12-01T05:00:00.123Z 0f8c…
//
// The token alone guards an outcome: it is in no other claim. The moment is for [outbox.Reclaim], which
// finds by it claims that were made later.
func fenceOf(at time.Time, token string) outbox.Fence {
	return outbox.Fence(momentText(at) + " " + token)
}

// tokenOf is a fence's token; of what is no fence, one that no row has.
func tokenOf(f outbox.Fence) string {
	_, token, ok := strings.Cut(string(f), " ")
	if !ok || token == "" {
		return "none"
	}
	return token
}
