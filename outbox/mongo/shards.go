package mongo

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/outbox"
)

// nothing: rows of no shard at all are asked for.
func nothing(s outbox.Shards) bool { return s.Of > 0 && len(s.Own) == 0 }

// inShards is the condition that a row is in one of the shards; nil: all are. The hash is
// the server's, so that all relays agree, and is of the key as text where the server can
// make text of it. Of binary keys it cannot: then all writers must write a key in the same way.
func (l *layout) inShards(s outbox.Shards) bson.D {
	if s.Of <= 0 || len(s.Own) == s.Of {
		return nil
	}
	own := make(bson.A, len(s.Own))
	for i, n := range s.Own {
		own[i] = n
	}
	return op("$expr", op("$in", bson.A{l.shardOf(s.Of), own}))
}

func (l *layout) shardOf(of int) any {
	names := l.keyColumns()
	key := any("$" + names[len(names)-1])
	for i := len(names) - 2; i >= 0; i-- {
		empty := op("$in", bson.A{op("$ifNull", bson.A{"$" + names[i], ""}), bson.A{""}})
		key = op("$cond", bson.A{empty, key, "$" + names[i]})
	}
	text := op("$convert", bson.D{is("input", key), is("to", "string"), is("onError", key), is("onNull", "")})
	// The remainder has the sign of the hash.
	return op("$abs", op("$mod", bson.A{op("$toHashedIndexKey", text), of}))
}
