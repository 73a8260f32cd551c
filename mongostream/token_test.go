package mongostream

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
)

// Tokens as a mongod 6.0.5 gave them.
const (
	tokenInsert     = "826B0E5A48000000162B022C0100296E5A100490C5988B571B41E89620AD2D5722EEE446645F696400646B0E5A48C6D6394B838707890004"
	tokenDrop       = "826B0E5A48000000172B022C0100296E5A100490C5988B571B41E89620AD2D5722EEE404"
	tokenInvalidate = "826B0E5A48000000172B022C0100296F5A100490C5988B571B41E89620AD2D5722EEE404"
	tokenIdle       = "826B0E5ACE0000001E2B0229296E04"
)

func TestATokenTellsItsTimeItsKindAndItsCollection(t *testing.T) {
	t.Parallel()
	uuid, _ := hex.DecodeString("90c5988b571b41e89620ad2d5722eee4")
	insert := bson.Timestamp{T: 0x6B0E5A48, I: 0x16}
	for _, c := range []struct {
		token string
		want  tokenParts
		kind  string
	}{
		{tokenInsert, tokenParts{At: insert, Known: true, Event: true, Collection: uuid}, "event"},
		{tokenDrop, tokenParts{At: after(insert), Known: true, Event: true, Collection: uuid}, "event"},
		{tokenInvalidate, tokenParts{At: after(insert), Known: true, Event: true, Invalidate: true, Collection: uuid}, "invalidate"},
		{tokenIdle, tokenParts{At: bson.Timestamp{T: 0x6B0E5ACE, I: 0x1E}, Known: true}, "time"},
		// The second version of the format, and a place in a transaction that takes two bytes.
		{strings.Replace(tokenInsert, "2B022C010029", "2B042C01002C0100", 1), tokenParts{At: insert, Known: true, Event: true, Collection: uuid}, "event"},
		// Of a format to come nothing is known but the time.
		{"826B0E5A4800000016FF", tokenParts{At: insert}, "unknown"},
	} {
		p, ok := parseToken(c.token)
		if !ok || p.At != c.want.At || p.Known != c.want.Known || p.Event != c.want.Event || p.Invalidate != c.want.Invalidate || !bytes.Equal(p.Collection, c.want.Collection) {
			t.Errorf("%s is %+v %v, want %+v", c.token, p, ok, c.want)
		}
		if p.kind() != c.kind {
			t.Errorf("%s is of kind %s, want %s", c.token, p.kind(), c.kind)
		}
	}
	for _, text := range []string{"", "8", "82", "826B0E5A48000000", "7F6B0E5A4800000016", "82zz0E5A4800000016", "no token"} {
		if p, ok := parseToken(text); ok || !p.At.IsZero() {
			t.Errorf("%q is %+v", text, p)
		}
	}
}

func TestAMomentLiesBetweenWhatWasCommittedBeforeAndAtIt(t *testing.T) {
	t.Parallel()
	at := tokenTime(tokenDrop)
	moment := AtTime(at)
	if event.AtToken(tokenInsert).Compare(moment) >= 0 {
		t.Error("an earlier event lies above the moment")
	}
	for _, token := range []string{tokenDrop, tokenInvalidate, tokenIdle} {
		if event.AtToken(token).Compare(moment) <= 0 {
			t.Errorf("%s lies below the moment of its own time", token)
		}
	}
	if AtTime(after(at)).Compare(event.AtToken(tokenInvalidate)) <= 0 {
		t.Error("the next moment does not lie above all of the time before")
	}
	if got := after(bson.Timestamp{T: 1, I: 1<<32 - 1}); got != (bson.Timestamp{T: 2}) {
		t.Errorf("after the last tick of a second comes %v", got)
	}
}

func FuzzToken(f *testing.F) {
	for _, token := range []string{tokenInsert, tokenDrop, tokenInvalidate, tokenIdle, ""} {
		f.Add(token)
	}
	f.Fuzz(func(t *testing.T, token string) {
		p, ok := parseToken(token)
		if ok && AtTime(p.At).Compare(event.AtToken(strings.ToUpper(token))) > 0 {
			t.Errorf("%s lies before its own moment %s", token, AtTime(p.At))
		}
	})
}

func TestAnUnusualTokenIsGivenBackWhole(t *testing.T) {
	t.Parallel()
	odd := func(data string) bson.Raw {
		doc, err := bson.Marshal(bson.D{{Key: "_data", Value: data}, {Key: "_typeBits", Value: bson.Binary{Data: []byte{1}}}})
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	var u unusual
	u.note(tokenOf("A1"))
	u.note(odd("A2"))
	u.note(odd("A4"))
	if len(u.tokens) != 2 {
		t.Fatalf("%d tokens are kept", len(u.tokens))
	}
	if got := u.take("A1"); !bytes.Equal(got, tokenOf("A1")) || !plainToken(got) {
		t.Errorf("A1 is %s", got)
	}
	if got := u.take("A2"); !bytes.Equal(got, odd("A2")) {
		t.Errorf("A2 is %s", got)
	}
	if got := u.take("A3"); !bytes.Equal(got, tokenOf("A3")) || len(u.tokens) != 1 {
		t.Errorf("A3 is %s, %d tokens are kept", got, len(u.tokens))
	}
	if got := u.take("A5"); !plainToken(got) || len(u.tokens) != 0 {
		t.Errorf("A5 is %s, %d tokens are kept", got, len(u.tokens))
	}
}

func TestTheRampAsksForFewThenForMoreAndForLessOfLargeEvents(t *testing.T) {
	t.Parallel()
	r := newRamp(100)
	var asked []int
	for range 9 {
		n := r.next()
		asked = append(asked, n)
		r.took(n, n*500)
	}
	if !slices.Equal(asked, []int{1, 2, 4, 8, 16, 32, 64, 100, 100}) {
		t.Errorf("asked for %v", asked)
	}
	r.took(0, 200) // silence says nothing
	if n := r.next(); n != 100 {
		t.Errorf("asks for %d after silence", n)
	}
	r.took(3, 3<<20)
	if n := r.next(); n != 2 {
		t.Errorf("asks for %d events of 1 MiB", n)
	}
	for range 40 {
		r.took(100, 100*500)
	}
	if n := r.next(); n != 100 {
		t.Errorf("still asks for %d", n)
	}
	r.took(1, 16<<20)
	if n := r.next(); n != 1 {
		t.Errorf("asks for %d of the largest events", n)
	}
}
