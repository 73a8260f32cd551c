package mongostream

import (
	"bytes"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// unusual keeps the tokens that are more than their digits: with some kinds of _id the
// server adds what the digits cannot say, and it must get that back. Positions
// are digits alone, so the rest waits here until the position is stored.
type unusual struct {
	sync.Mutex
	tokens []bson.Raw // in the order of the stream
}

// note keeps the token if it is unusual.
func (u *unusual) note(token bson.Raw) {
	if plainToken(token) {
		return
	}
	u.Lock()
	defer u.Unlock()
	u.tokens = append(u.tokens, bytes.Clone(token))
}

// take gives the whole token with these digits and forgets the ones before.
func (u *unusual) take(data string) bson.Raw {
	u.Lock()
	defer u.Unlock()
	for len(u.tokens) > 0 && tokenData(u.tokens[0]) < data {
		u.tokens = u.tokens[1:]
	}
	if len(u.tokens) > 0 && tokenData(u.tokens[0]) == data {
		return u.tokens[0]
	}
	return tokenOf(data)
}
