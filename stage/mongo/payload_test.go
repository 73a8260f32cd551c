package mongo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
	"github.com/walrelay/walrelay/stage"
)

// decoded is JSON with numbers as fractions, so that 1.50 and 15e-1 are the same.
func decoded(t interface{ Fatalf(string, ...any) }, text []byte) any {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return fractions(v)
}

func fractions(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = fractions(v[k])
		}
	case []any:
		for i := range v {
			v[i] = fractions(v[i])
		}
	case json.Number:
		r, ok := new(big.Rat).SetString(v.String())
		if !ok {
			return v.String()
		}
		return r.RatString()
	}
	return v
}

// What is stored comes out of the relay's own encoder as the same members and values,
// and is what the driver reads.
func roundTrip(t interface {
	Fatalf(string, ...any)
	Errorf(string, ...any)
}, body string,
) {
	doc, err := payloadDocument(json.RawMessage(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if err := doc.Validate(); err != nil {
		t.Fatalf("%s: the driver finds no document: %v", body, err)
	}
	text, err := bsonjson.New(bsonjson.Options{}).AppendDocument(nil, doc)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if in, out := decoded(t, []byte(body)), decoded(t, text); !reflect.DeepEqual(in, out) {
		t.Errorf("%s arrives as %s", body, text)
	}
}

func TestPayloadArrivesWithTheSameMembersAndValues(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{}`, ` { } `, `{"a":null,"b":true,"c":false,"d":"","e":[],"f":{},"":0}`, `{"a":[[],[1,[2]],{"b":[null]}]}`,
		`{ "n":9007199254740993 , "html":"<a>", "s":"\u00e9\ud83d\ude00\/\b\"\\" }`, `{"\u0061\n":1}`, `{"$oid":"507f1f77bcf86cd799439011"}`,
		`{"a":{"$date":"x","$numberLong":"1","$ref":"c","$id":1}}`, `{"a.b":1,"$set":{"$inc":1},"_id":[1]}`,
		`{"i":[0,-1,2147483647,2147483648,-2147483648,-2147483649,9223372036854775807,-9223372036854775808]}`,
		`{"f":[1.5,-0.0,1e3,1E+3,1e-7,0.1,19.99,1e30,5e-324,1.7976931348623157e308,10000000000000000000,1.50,2.0,0e999999999]}`, "{\t\"a\"\r:\n1 , \"b\" : [ 1 , 2 ] }",
	} {
		roundTrip(t, body)
	}
}

func TestNumberOfEachKindIsStoredAsThatKind(t *testing.T) {
	t.Parallel()
	for literal, want := range map[string]bson.Type{
		"0": bson.TypeInt32, "-1": bson.TypeInt32, "2147483647": bson.TypeInt32, "2147483648": bson.TypeInt64, "-2147483649": bson.TypeInt64,
		"9223372036854775807": bson.TypeInt64, "9223372036854775808": bson.TypeDouble, "1.0": bson.TypeDouble, "1e2": bson.TypeDouble, "-0": bson.TypeDouble, "19.99": bson.TypeDouble,
	} {
		doc, err := payloadDocument(json.RawMessage(`{"n":` + literal + `}`))
		if literal == "9223372036854775808" { // a power of two, of 19 digits: a double prints 17
			if err == nil {
				t.Errorf("%s is accepted", literal)
			}
			continue
		}
		if err != nil || doc.Lookup("n").Type != want {
			t.Errorf("%s is %s, %v, want %s", literal, doc.Lookup("n").Type, err, want)
		}
	}
}

// A number that would come out as another one is refused, and staging says so before
// there is a transaction to spoil. Nothing of the payload is shown.
func TestWhatBSONCannotHoldIsRefusedWhenItIsStaged(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	x := &Outbox{o: Options{}.withDefaults()}
	text := &Outbox{o: Options{PayloadAsText: true}.withDefaults()}
	for body, want := range map[string]string{
		`{"a":12345678901234567890}`:    "at byte 5",
		`{"a": 0.30000000000000000001}`: "neither int64 nor double",
		`{"a":[1e400]}`:                 "at byte 6",
		`{"a":-1e-400}`:                 "neither int64 nor double",
		`{"a":1e99999999999999999999}`:  "neither int64 nor double",
		nested(100):                     "deeper than 99 levels",
		`{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`: "deeper than 99 levels",
		`{"a":"` + strings.Repeat("x", 16<<20) + `"}`:                     "and MongoDB stores 16777216",
	} {
		e := stage.Event{Route: "r", Type: "t", Payload: json.RawMessage(body)}
		b := x.Buffer()
		_, err := b.Stage(context.Background(), e)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "123456789") || b.Len() != 0 {
			t.Errorf("%.40s: %v, want one that says %q", body, err, want)
		}
		if _, err := text.Buffer().Stage(context.Background(), e); (err == nil) != (len(body) < 16<<20) {
			t.Errorf("%.40s as text: %v", body, err)
		}
	}
	if _, err := x.Buffer().Stage(context.Background(), stage.Event{Route: "r", Type: "t", Payload: json.RawMessage(nested(99))}); err != nil {
		t.Error(err)
	}
}

// The server stores what staging lets through: the deepest, the largest, any name.
func TestServerStoresWhatStagingLetsThrough(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{})
	deepest := strings.Repeat(`{"a":`, 99) + "1" + strings.Repeat("}", 99)
	fits := func(n int) string { return `{"a":"` + strings.Repeat("x", n) + `"}` }
	n := 16<<20 - 400
	for ; ; n++ {
		s := stage.Staged{Event: stage.Event{Route: "orders", Type: "Large"}, Body: json.RawMessage(fits(n + 1))}
		if _, err := x.document(&s); err != nil {
			break
		}
	}
	for _, body := range []string{deepest, fits(n), `{"$oid":"x","a.b":{"$set":1},"$ref":"c","$id":1,"":{"":0},"a":1,"a":2}`} {
		res := h.flush(x, stage.Event{Route: "orders", Type: "Large", Payload: json.RawMessage(body)})
		if res.Written != 1 {
			t.Errorf("%.40s: %+v", body, res)
		}
	}
	if docs := h.docs("outbox"); len(docs) != 3 || len(docs[1]) != 16<<20 {
		t.Errorf("%d documents, the large one has %d bytes", len(docs), len(docs[1]))
	}
}

func TestDecimalComparisonAgreesWithFractions(t *testing.T) {
	t.Parallel()
	literal := rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := literal.Draw(t, "a"), literal.Draw(t, "b")
		if rapid.Bool().Draw(t, "the same, printed otherwise") {
			r, _ := new(big.Rat).SetString(a)
			b = r.FloatString(110)
		}
		ra, _ := new(big.Rat).SetString(a)
		rb, _ := new(big.Rat).SetString(b)
		if got, want := sameNumber(a, b), ra.Cmp(rb) == 0; got != want {
			t.Fatalf("%s and %s are the same: %t, want %t", a, b, got, want)
		}
	})
}

// Any JSON that staging lets through is a valid document that says the same, or is refused.
func FuzzPayload(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x",{"b":null}]}`, `{"a":1e400}`, `{"\u00e9":"\ud83d\ude00"}`, ` {"a" : -0 } `} {
		f.Add(s)
	}
	clock := hlc.New(frozen(1_700_000_000_000), 0)
	f.Fuzz(func(t *testing.T, body string) {
		buffer := stage.NewBuffer(clock, frozen(1_700_000_000_000), 1)
		if _, err := buffer.Stage(context.Background(), stage.Event{Route: "r", Type: "t", Payload: json.RawMessage(body)}); err != nil {
			return
		}
		if _, err := payloadDocument(json.RawMessage(body)); err != nil {
			if !strings.Contains(err.Error(), "int64 nor double") && !strings.Contains(err.Error(), "levels") {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		if doubled(t, body) {
			return
		}
		roundTrip(t, body)
	})
}

// doubled reports members of the same name: they stay apart in a document, and are one
// for the decoder that judges.
func doubled(t *testing.T, body string) bool {
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	var names []map[string]bool
	key := []bool{}
	for {
		tok, err := dec.Token()
		if err != nil {
			return false
		}
		switch tok {
		case json.Delim('{'):
			names, key = append(names, map[string]bool{}), append(key, true)
			continue
		case json.Delim('['):
			names, key = append(names, nil), append(key, false)
			continue
		case json.Delim('}'), json.Delim(']'):
			names, key = names[:len(names)-1], key[:len(key)-1]
			if len(names) == 0 {
				return false
			}
		default:
			if last := len(names) - 1; key[last] {
				name := fmt.Sprint(tok)
				if names[last][name] {
					return true
				}
				names[last][name] = true
				key[last] = false
				continue
			}
		}
		if last := len(names) - 1; names[last] != nil {
			key[last] = true
		}
	}
}
