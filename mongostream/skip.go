package mongostream

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
	"github.com/walrelay/walrelay/mongostream/document"
)

// Oversized is a document whose event is too large for a change stream.
type Oversized struct {
	// ID is the text of its _id, as in event.RowID.
	ID string
	// Bytes is its size in BSON.
	Bytes int
	// At is the event's position.
	At event.Position

	token  bson.Raw
	before int // events that were read before it
}

const (
	// oversize is the size of document and token together from which an event is too large: the server carries
	// 16 MiB and 16 KiB, some hundred bytes of which go to the rest of the event. The token holds the _id
	// twice over, in hex digits.
	oversize = 16<<20 + 15<<10
	// skipFor bounds how long an answer of the server is waited for.
	skipFor = 5 * time.Second
	// skipMost bounds how far the next large document may be.
	skipMost = 100_000
)

// SkipOversize has the source pass by the next document whose event is too large for a
// change stream, and nothing else: not even the rest of its transaction. It refuses while somebody reads.
//
// The position stays; that event is passed by when the stream breaks at it.
func SkipOversize(ctx context.Context, client *mongo.Client, o Options) (*Oversized, error) {
	o = o.WithDefaults()
	r, err := o.unread(ctx, client)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, precondition(AnchorNotInitialised, fmt.Sprintf("there is no position of source %s", o.Source), "run 'walrelay init'")
	}
	found, err := nextOversize(ctx, client, &o, r.Token, skipMost)
	if err != nil {
		return nil, Classify(err, "looking for the document that is too large")
	}
	if found == nil {
		return nil, precondition(AnchorOversize, "no document was inserted after the position that is too large for a change event",
			"if the stream breaks at one place all the same, choose where to go on with 'walrelay position set'")
	}
	_, err = o.update(ctx, client, nil, bson.D{{Key: "skip", Value: bson.D{{Key: "$literal", Value: found.token}}}}, false)
	return found, err
}

// skip passes by the event that an operator said is to be passed by, if it is the very next.
func (s *Stream) skip(ctx context.Context, client *mongo.Client, p *standing) {
	if p.skip == nil || p.attempts.failures == 0 || tokenData(p.skip) <= tokenData(p.received) {
		return
	}
	found, err := nextOversize(ctx, client, &s.opt, p.received, 1)
	if err != nil || found == nil || found.before > 0 || tokenData(found.token) != tokenData(p.skip) {
		return
	}
	p.received, p.skip = found.token, nil
	if s.obs.Ignored != nil {
		s.obs.Ignored("oversize", 1)
	}
}

// nextOversize reads events without their documents, which is all that makes them large.
// nil: there is none among the next.
func nextOversize(ctx context.Context, client *mongo.Client, o *Options, after bson.Raw, most int) (*Oversized, error) {
	c, _, err := openCursorWith(ctx, client, o, append(streamPipeline(start{token: after})[:1:1], bson.D{{Key: "$project", Value: bson.D{
		{Key: "operationType", Value: 1}, {Key: "documentKey", Value: 1}, {Key: "bytes", Value: bson.D{{Key: "$bsonSize", Value: "$fullDocument"}}},
	}}}))
	if err != nil {
		return nil, err
	}
	defer c.close(ctx)
	n := 0
	for began := time.Now(); n < most && time.Since(began) < skipFor && c.id != 0; {
		r, err := c.more(ctx, min(100, most), 100*time.Millisecond)
		if err != nil {
			return nil, err
		}
		if r.count > 0 {
			began = time.Now()
		}
		for rest := r.events; len(rest) > 0; {
			var doc []byte
			doc, rest = nextEvent(rest)
			e := bson.Raw(doc)
			if op, _ := e.Lookup("operationType").StringValueOK(); op != opInsert {
				continue
			}
			size, _ := e.Lookup("bytes").AsInt64OK()
			if token, _ := e.Lookup("_id").DocumentOK(); int(size)+len(token) >= oversize {
				id := e.Lookup("documentKey", "_id")
				text, err := document.EncodeID(nil, bsonjson.Type(id.Type), id.Value)
				if err != nil {
					text = []byte("?")
				}
				return &Oversized{ID: string(text), Bytes: int(size), At: event.AtToken(tokenData(token)), token: token, before: n}, nil
			}
			n++
		}
	}
	return nil, nil
}
