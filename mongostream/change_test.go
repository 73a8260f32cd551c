package mongostream

import (
	"bytes"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func aChange(t testing.TB) bson.Raw {
	doc, err := bson.Marshal(bson.D{
		{Key: "_id", Value: bson.D{{Key: "_data", Value: tokenInsert}}},
		{Key: "operationType", Value: "insert"},
		{Key: "clusterTime", Value: bson.Timestamp{T: 7, I: 8}},
		{Key: "wallTime", Value: bson.DateTime(1234)},
		{Key: "fullDocument", Value: bson.D{{Key: "_id", Value: 1}}},
		{Key: "lsid", Value: bson.D{{Key: "id", Value: 1}}},
		{Key: "txnNumber", Value: int64(9)},
		{Key: "to", Value: bson.D{{Key: "coll", Value: "x"}}},
		{Key: "a", Value: 1.5},
		{Key: "b", Value: true},
		{Key: "c", Value: nil},
		{Key: "d", Value: bson.NewObjectID()},
		{Key: "e", Value: bson.A{1}},
		{Key: "f", Value: bson.Binary{Data: []byte("1234")}},
		{Key: "g", Value: bson.NewDecimal128(1, 2)},
		{Key: "h", Value: bson.MinKey{}},
		{Key: "i", Value: bson.JavaScript("x")},
		{Key: "j", Value: bson.CodeWithScope{Code: "x", Scope: bson.D{}}},
		{Key: "k", Value: int32(1)},
		{Key: "l", Value: bson.DBPointer{DB: "x", Pointer: bson.NewObjectID()}},
		{Key: "m", Value: bson.Symbol("x")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestAChangeIsTakenApartWhateverStandsBesides(t *testing.T) {
	t.Parallel()
	var c change
	if err := c.read(aChange(t)); err != nil {
		t.Fatal(err)
	}
	if string(c.op) != "insert" || string(c.token) != tokenInsert || c.at != (bson.Timestamp{T: 7, I: 8}) || c.txn != 9 || c.lsid == nil || c.doc == nil || c.micros() != 1_234_000 {
		t.Errorf("%+v", c)
	}
	if to, _ := c.to.Lookup("coll").StringValueOK(); to != "x" {
		t.Errorf("to %q", to)
	}
	c.wallMillis = 0 // servers before 6.0
	if c.micros() != 7*time.Second.Microseconds() {
		t.Errorf("committed at %d", c.micros())
	}
}

func TestAChangeThatIsCutShortIsAnError(t *testing.T) {
	t.Parallel()
	whole := aChange(t)
	for n := range whole {
		var c change
		if c.read(whole[:n]) == nil {
			t.Errorf("%d of %d bytes were taken", n, len(whole))
		}
		cut := bytes.Clone(whole[:n])
		if n >= 5 { // the frame is right, what is in it is not
			cut[0], cut[1], cut[2], cut[3] = byte(n), byte(n>>8), 0, 0
			cut[n-1] = 0
			_ = c.read(cut)
		}
	}
}

// What comes from the network is anything: no panic, and no answer that is not one.
func FuzzReply(f *testing.F) {
	whole, err := bson.Marshal(bson.D{{Key: "cursor", Value: bson.D{
		{Key: "id", Value: int64(1)}, {Key: "nextBatch", Value: bson.A{aChange(f), aChange(f)}}, {Key: "postBatchResumeToken", Value: bson.D{{Key: "_data", Value: tokenIdle}}},
	}}, {Key: "operationTime", Value: bson.Timestamp{T: 1}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	for _, n := range []int{0, 4, 40, len(whole) / 2} {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, _, err := readReply(b)
		if err != nil {
			return
		}
		n := 0
		for rest := r.events; len(rest) > 0; n++ {
			var doc []byte
			if doc, rest = nextEvent(rest); doc == nil {
				t.Fatal("an event that was counted is none")
			}
			var c change
			_ = c.read(doc)
		}
		if n != r.count || n > 0 && r.last == nil {
			t.Fatalf("%d events of %d, last %v", n, r.count, r.last)
		}
		_ = tokenData(r.end)
	})
}
