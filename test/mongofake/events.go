package mongofake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Insert is the change event of an insert as mongod 6.0 gives it, its token made
// of the cluster time, the ordinal inside the transaction (0 to 63), the
// collection's identity and the document's _id: an ObjectID, a string, or an int
// from 1 to 63.
func Insert(database, collection string, at bson.Timestamp, ordinal int, document bson.D) bson.D {
	var id any
	for _, field := range document {
		if field.Key == "_id" {
			id = field.Value
		}
	}
	token := head(at) + "2B022C0100" + small(ordinal) + "6E5A1004" +
		strings.ToUpper(hex.EncodeToString(CollectionUUID(database, collection))) + "46" + idField(id) + "0004"
	return bson.D{
		{Key: "_id", Value: bson.D{{Key: "_data", Value: token}}},
		{Key: "operationType", Value: "insert"},
		{Key: "clusterTime", Value: at},
		{Key: "wallTime", Value: time.Unix(int64(at.T), 0)},
		{Key: "fullDocument", Value: document},
		{Key: "ns", Value: bson.D{{Key: "db", Value: database}, {Key: "coll", Value: collection}}},
		{Key: "documentKey", Value: bson.D{{Key: "_id", Value: id}}},
	}
}

// Transaction marks events as those of one transaction, of the session with the
// number.
func Transaction(session byte, number int64, events ...bson.D) []any {
	id := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: make([]byte, 16)}
	id.Data[15] = session
	owner := bson.Binary{Data: make([]byte, 32)}
	var marked []any
	for _, e := range events {
		marked = append(marked, append(e[:len(e):len(e)],
			bson.E{Key: "txnNumber", Value: number},
			bson.E{Key: "lsid", Value: bson.D{{Key: "id", Value: id}, {Key: "uid", Value: owner}}}))
	}
	return marked
}

// IdleToken is the token of a moment at which no event need be, as in empty batches.
func IdleToken(at bson.Timestamp) string { return head(at) + "2B0229296E04" }

// CollectionUUID is the identity of a collection in tokens: the same for the same
// name.
func CollectionUUID(database, collection string) []byte {
	sum := sha256.Sum256([]byte(database + "." + collection))
	return sum[:16]
}

func head(at bson.Timestamp) string { return fmt.Sprintf("82%08X%08X", at.T, at.I) }

// small is the KeyString of an int from 0 to 63.
func small(n int) string {
	if n == 0 {
		return "29"
	}
	return fmt.Sprintf("2B%02X", n<<1)
}

// idField is the KeyString of the field _id: type, name, value.
func idField(id any) string {
	const name = "5F696400"
	switch id := id.(type) {
	case bson.ObjectID:
		return "64" + name + "64" + strings.ToUpper(id.Hex())
	case string:
		return "3C" + name + "3C" + strings.ToUpper(hex.EncodeToString([]byte(id))) + "00"
	case int:
		return "1E" + name + small(id)
	default:
		panic(fmt.Sprintf("mongofake: no token for an _id of type %T", id))
	}
}
