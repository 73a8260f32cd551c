package mongostream

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// cursor is a change stream on the server, driven by plain commands. The driver's
// own ChangeStream resumes by rules of its own: for ever and without a pause where
// one event breaks the connection each time, and with an option that does not go
// past the end of a dropped collection. Here every answer and every error is ours
// to judge, and the cursor's id is known when a call was cancelled.
//
// It is for one goroutine.
type cursor struct {
	db      *mongo.Database
	name    string // of the collection
	session *mongo.Session
	id      int64 // 0: the server has closed it
}

// reply is one answer of the server. Its bytes are nobody else's.
type reply struct {
	// events holds the elements of the batch, one after the other.
	events []byte
	count  int
	// last is the token of the last event; nil without events.
	last bson.Raw
	// ends: the last event is no insert, but the end of the collection or near it.
	ends bool
	// end is the token of the place that was read up to; nil: the server gave none.
	end bson.Raw
	// at is the server's time of operation: what it had applied.
	at   bson.Timestamp
	size int // bytes
}

// openCursor begins a stream without waiting for its first event: the answer to
// "nothing yet" comes at once, whatever lies between the position and the end of the log.
func openCursor(ctx context.Context, client *mongo.Client, o *Options, from start) (*cursor, reply, error) {
	return openCursorWith(ctx, client, o, streamPipeline(from))
}

// openCursorWith is for looking: positions of another pipeline than ours are ours only at events that ours has, too.
func openCursorWith(ctx context.Context, client *mongo.Client, o *Options, pipeline bson.A) (*cursor, reply, error) {
	session, err := client.StartSession(options.Session().SetCausalConsistency(false))
	if err != nil {
		return nil, reply{}, err
	}
	c := &cursor{db: client.Database(o.Database), name: o.Collection, session: session}
	r, err := c.run(ctx, bson.D{
		{Key: "aggregate", Value: o.Collection},
		{Key: "pipeline", Value: pipeline},
		{Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 0}}},
	})
	if err != nil {
		session.EndSession(context.WithoutCancel(ctx))
		return nil, reply{}, err
	}
	return c, r, nil
}

// more asks for up to n events and waits up to await for the first of them. A call that
// is cut off loses the answer, and the cursor with it.
func (c *cursor) more(ctx context.Context, n int, await time.Duration) (reply, error) {
	if _, limited := ctx.Deadline(); limited {
		// The driver makes a limit of the await of it, beside ours.
		plain, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
		ctx = plain
	}
	return c.run(ctx, bson.D{
		{Key: "getMore", Value: c.id},
		{Key: "collection", Value: c.name},
		{Key: "batchSize", Value: n},
		{Key: "maxTimeMS", Value: max(await.Milliseconds(), 1)},
	})
}

func (c *cursor) run(ctx context.Context, command bson.D) (reply, error) {
	raw, err := c.db.RunCommand(mongo.NewSessionContext(ctx, c.session), command).Raw()
	if err != nil {
		return reply{}, err
	}
	r, id, err := readReply(raw)
	if err != nil {
		return reply{}, err
	}
	c.id = id
	return r, nil
}

// close lets the server's cursor go, also after a call that was cancelled.
func (c *cursor) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if c.id != 0 {
		_ = c.db.RunCommand(mongo.NewSessionContext(ctx, c.session), bson.D{
			{Key: "killCursors", Value: c.name}, {Key: "cursors", Value: bson.A{c.id}},
		}).Err()
		c.id = 0
	}
	c.session.EndSession(ctx)
}

var errReply = errors.New("the server's answer is not that of a change stream")

func readReply(raw bson.Raw) (r reply, id int64, err error) {
	r.size = len(raw)
	cur, ok := raw.Lookup("cursor").DocumentOK()
	if !ok {
		return r, 0, errReply
	}
	if t, i, ok := raw.Lookup("operationTime").TimestampOK(); ok {
		r.at = bson.Timestamp{T: t, I: i}
	}
	elements, err := cur.Elements()
	if err != nil {
		return r, 0, errReply
	}
	for _, e := range elements {
		switch v := e.Value(); e.Key() {
		case "id":
			id, ok = v.AsInt64OK()
		case "firstBatch", "nextBatch":
			var batch bson.RawArray
			if batch, ok = v.ArrayOK(); ok {
				ok = r.scan(batch)
			}
		case "postBatchResumeToken":
			r.end, ok = v.DocumentOK()
		}
		if !ok {
			return r, 0, errReply
		}
	}
	return r, id, nil
}

// scan counts the events and finds the last one.
func (r *reply) scan(batch bson.RawArray) bool {
	r.events = batch[4 : len(batch)-1]
	var last []byte
	for rest := r.events; len(rest) > 0; r.count++ {
		if last, rest = nextEvent(rest); last == nil {
			return false
		}
	}
	if last == nil {
		return true
	}
	var c change
	if c.read(last) != nil {
		return false
	}
	r.last, r.ends = c.id, string(c.op) != opInsert
	return true
}

// nextEvent cuts the first document off the elements of an array; nil: there is none.
func nextEvent(elements []byte) (doc, rest []byte) {
	if len(elements) == 0 || elements[0] != byte(bson.TypeEmbeddedDocument) {
		return nil, nil
	}
	b := elements[1:]
	for i, c := range b { // the index, in digits
		if c != 0 {
			continue
		}
		b = b[i+1:]
		if len(b) < 4 {
			return nil, nil
		}
		n := int(binary.LittleEndian.Uint32(b))
		if n < 5 || n > len(b) {
			return nil, nil
		}
		return b[:n], b[n:]
	}
	return nil, nil
}

// tokenBytes is the hex digits of a token, aliasing it; nil: it is none.
func tokenBytes(token bson.Raw) []byte {
	const head = 4 + 1 + len("_data") + 1 + 4
	if len(token) < head || token[4] != byte(bson.TypeString) || string(token[5:11]) != "_data\x00" {
		return nil
	}
	n := int(binary.LittleEndian.Uint32(token[11:]))
	if n < 2 || n > len(token)-head {
		return nil
	}
	return token[head : head+n-1]
}

// tokenData is the hex digits of a token; empty: it is none.
func tokenData(token bson.Raw) string { return string(tokenBytes(token)) }

// plainToken reports whether a token is its digits and nothing else, so that it can be made of them again.
func plainToken(token bson.Raw) bool { return len(token) == 4+1+6+4+len(tokenBytes(token))+1+1 }
