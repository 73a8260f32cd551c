package mongo

import (
	"context"
	"fmt"
	"hash/crc32"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/stage"
)

// DefaultNodeKey is the node key of applications that set none.
const DefaultNodeKey = stage.DefaultNodeKey

// Checkpoint keeps the greatest stamp that was committed, so that no later process
// issues a lower one (package hlc has the contract). Many nodes may share a
// collection; its documents are {_id: node key, hlc: int64}.
type Checkpoint struct {
	// Collection is hlc_checkpoint unless given.
	Collection string
	// NodeKey names the document that this node raises; [DefaultNodeKey] unless given.
	NodeKey string
	// Stripes spreads the marks of a node over so many documents, picked by the
	// session, so that transactions beside each other do not conflict at one document.
	// They are node_key/0, node_key/1 and so on. 0 and 1 mean one, node_key itself.
	Stripes int
}

func (c Checkpoint) collection() string {
	if c.Collection == "" {
		return "hlc_checkpoint"
	}
	return c.Collection
}

// Load answers the greatest mark over all node keys; found is false when there is
// none, or no collection. A mark that is no integer, or no stamp, is an [event.Error]
// that says what to do, never "no mark": to start without it would be to stamp below
// what is already out.
func (c Checkpoint) Load(ctx context.Context, db *mongo.Database) (mark hlc.Stamp, found bool, err error) {
	if err := sameClient(ctx, db); err != nil {
		return 0, false, fmt.Errorf("checkpoint %s: %w", c.collection(), err)
	}
	// All of them, and not the first by hlc: text sorts above numbers, and null below.
	cursor, err := primary(db, c.collection()).Find(ctx, bson.D{}, options.Find().SetProjection(bson.D{{Key: "hlc", Value: 1}}))
	if err != nil {
		return 0, false, fmt.Errorf("checkpoint %s: %w", c.collection(), err)
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	for cursor.Next(ctx) {
		s, err := c.stamp(cursor.Current)
		if err != nil {
			return 0, false, err
		}
		mark, found = max(mark, s), true
	}
	if err := cursor.Err(); err != nil {
		return 0, false, fmt.Errorf("checkpoint %s: %w", c.collection(), err)
	}
	return mark, found, nil
}

// stamp is the mark of a document.
func (c Checkpoint) stamp(doc bson.Raw) (hlc.Stamp, error) {
	value := doc.Lookup("hlc")
	n, ok := value.AsInt64OK()
	if !ok || value.Type != bson.TypeInt64 && value.Type != bson.TypeInt32 {
		kind := "missing"
		if value.Type != 0 {
			kind = "of type " + value.Type.String()
		}
		return 0, c.misfit(fmt.Sprintf("mark hlc of %s in %s is %s, and marks are 64-bit integers", doc.Lookup("_id"), c.collection(), kind), nil)
	}
	if n < 0 {
		return 0, c.misfit("mark "+strconv.FormatInt(n, 10)+" in "+c.collection()+" is no stamp", nil)
	}
	return hlc.Stamp(n), nil
}

// Advance raises the node's mark, never lowers it, whoever else is writing. ctx has
// the transaction of the documents that the mark covers; let it be the last thing
// before the commit. [Outbox.Flush] does so by itself.
func (c Checkpoint) Advance(ctx context.Context, db *mongo.Database, mark hlc.Stamp) error {
	if err := inTransaction(ctx, db); err != nil {
		return fmt.Errorf("advancing the checkpoint: %w", err)
	}
	return c.raise(ctx, db, mark)
}

// raise leaves the comparison to the server, which makes it with the document that it
// writes: a writer that was overtaken since its transaction began is answered with a
// conflict, and outside of a transaction the server repeats by itself. So the greater
// mark stays.
func (c Checkpoint) raise(ctx context.Context, db *mongo.Database, mark hlc.Stamp) error {
	// The document is answered, since $max leaves a text or a date as it is, and is content.
	doc, err := db.Collection(c.collection()).FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: c.key(ctx)}},
		bson.D{{Key: "$max", Value: bson.D{{Key: "hlc", Value: int64(mark)}}}},
		options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Raw()
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", c.collection(), err)
	}
	_, err = c.stamp(doc)
	return err
}

// key is the same for all of a session's transactions: a session has one at a time,
// and a second flush in it never touches a second document.
func (c Checkpoint) key(ctx context.Context) string {
	key := c.NodeKey
	if key == "" {
		key = DefaultNodeKey
	}
	if c.Stripes <= 1 {
		return key
	}
	stripe := uint32(0)
	if s := mongo.SessionFromContext(ctx); s != nil {
		stripe = crc32.ChecksumIEEE(s.ID()) % uint32(c.Stripes)
	}
	return key + "/" + strconv.FormatUint(uint64(stripe), 10)
}

func (c Checkpoint) misfit(what string, cause error) error {
	return &event.Error{
		Class: event.Halt, Fault: event.FaultPrecondition, What: what,
		Remedy: "do not empty the collection, or stamps begin below those that are out: find the greatest stamp that was written (the greatest hlc of the outbox, or the newest records' forze_hlc), " +
			"and set it as the mark, {_id: \"" + DefaultNodeKey + "\", hlc: NumberLong(\"…\")}, in place of what is no mark",
		Cause: cause,
	}
}
