package mongostream

import (
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
)

// A resume token is {_data: <hex digits>}: a key that sorts as the stream does.
// Its beginning has been the same in every version so far: a time, then whether
// the token stands for an event or only for that time, and of which collection.
// walrelay reads it for lag and guards and hands it back unchanged: it makes no tokens.
const (
	keyTimestamp = 0x82
	keyZero      = 0x29 // the number 0
	keyOneByte   = 0x2B // a positive number in one byte; 0x2C: in two, and so on
	keyFalse     = 0x6E
	keyTrue      = 0x6F
	keyBinary    = 0x5A
	subtypeUUID  = 4
	uuidBytes    = 16

	tokenOfEvent = 128 // of an event; 0: of a time
)

// AtTime is a position just before everything that was committed at t: what was
// committed earlier lies below it, what was committed at t or later above. It is
// for comparing; no server takes it for a token.
func AtTime(t bson.Timestamp) event.Position {
	return event.AtToken(fmt.Sprintf("82%08X%08X", t.T, t.I))
}

// after is the smallest time past t.
func after(t bson.Timestamp) bson.Timestamp {
	if t.I == math.MaxUint32 {
		return bson.Timestamp{T: t.T + 1}
	}
	return bson.Timestamp{T: t.T, I: t.I + 1}
}

// tokenParts is what can be read from a token.
type tokenParts struct {
	At bson.Timestamp
	// Known: the rest was understood.
	Known bool
	// Event: the token stands for an event, and the server looks for that event when
	// it is asked to go on there. Otherwise it stands for a time.
	Event bool
	// Invalidate: the event is the end of a collection's stream.
	Invalidate bool
	// Collection is the UUID of the event's collection; nil: not known.
	Collection []byte
}

// kind names the token in the record.
func (p tokenParts) kind() string {
	switch {
	case !p.Known:
		return "unknown"
	case p.Invalidate:
		return "invalidate"
	case p.Event:
		return "event"
	}
	return "time"
}

// parseToken reads the hex digits of a token. ok: at least its time was understood.
func parseToken(token string) (p tokenParts, ok bool) {
	// The guards need no more than the first 64 bytes.
	var buf [64]byte
	n := min(len(token)/2, len(buf))
	k := keyReader{b: buf[:n]}
	if _, err := hex.Decode(buf[:], []byte(token[:2*n])); err != nil || k.byte() != keyTimestamp {
		return p, false
	}
	p.At.T, p.At.I = uint32(k.uint(4)), uint32(k.uint(4))
	if k.failed {
		return tokenParts{}, false
	}
	version, kind := k.number(), k.number()
	k.number() // the place in the transaction
	switch invalidate := k.byte(); {
	case k.failed || version < 1 || invalidate != keyFalse && invalidate != keyTrue:
		return p, true
	default:
		p.Event, p.Invalidate = kind == tokenOfEvent, invalidate == keyTrue
	}
	p.Known = true
	if k.byte() == keyBinary && k.byte() == uuidBytes && k.byte() == subtypeUUID {
		p.Collection = k.bytes(uuidBytes)
	}
	return p, true
}

// tokenTime is the cluster time that a token begins with; zero when it is not understood.
func tokenTime(token string) bson.Timestamp {
	p, _ := parseToken(token)
	return p.At
}

// keyReader takes a key apart.
type keyReader struct {
	b      []byte
	failed bool
}

func (k *keyReader) bytes(n int) []byte {
	if len(k.b) < n {
		k.failed, k.b = true, nil
		return nil
	}
	v := k.b[:n]
	k.b = k.b[n:]
	return v
}

func (k *keyReader) byte() byte {
	if v := k.bytes(1); v != nil {
		return v[0]
	}
	return 0
}

func (k *keyReader) uint(n int) uint64 {
	var v uint64
	for _, b := range k.bytes(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

// number reads a whole number that is not negative.
func (k *keyReader) number() int64 {
	switch kind := k.byte(); {
	case kind == keyZero:
		return 0
	case kind >= keyOneByte && kind < keyOneByte+8:
		return int64(k.uint(int(kind-keyOneByte)+1) >> 1) // the lowest bit says whether there are decimals
	}
	k.failed = true
	return 0
}

// clock writes a cluster time for people.
func clock(t bson.Timestamp) string {
	return fmt.Sprintf("%s.%d", time.Unix(int64(t.T), 0).UTC().Format(time.RFC3339), t.I)
}
