package bsonjson

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// document makes BSON with the driver.
func document(t testing.TB, members ...bson.E) []byte {
	t.Helper()
	raw, err := bson.Marshal(bson.D(members))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// form gives the value v as the options write it.
func form(t testing.TB, o Options, v any) string {
	t.Helper()
	got, err := New(o).AppendDocument(nil, document(t, bson.E{Key: "v", Value: v}))
	if err != nil {
		t.Fatalf("%#v: %v", v, err)
	}
	inner, _ := strings.CutPrefix(string(got), `{"v":`)
	return strings.TrimSuffix(inner, "}")
}

func decimal(t testing.TB, s string) bson.Decimal128 {
	t.Helper()
	d, err := bson.ParseDecimal128(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var uuid = bson.Binary{Subtype: 4, Data: []byte("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff")}

func TestEachTypeHasItsFormInEachFormat(t *testing.T) {
	t.Parallel()
	id := bson.ObjectID{0x65, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255}
	for _, c := range []struct {
		value                     any
		plain, relaxed, canonical string
	}{
		{int32(-7), `-7`, `-7`, `{"$numberInt":"-7"}`},
		{int64(math.MaxInt64), `9223372036854775807`, `9223372036854775807`, `{"$numberLong":"9223372036854775807"}`},
		{int64(1<<53 + 1), `9007199254740993`, `9007199254740993`, `{"$numberLong":"9007199254740993"}`},
		{1.0, `1.0`, `1.0`, `{"$numberDouble":"1.0"}`},
		{0.1, `0.1`, `0.1`, `{"$numberDouble":"0.1"}`},
		{math.Copysign(0, -1), `-0.0`, `-0.0`, `{"$numberDouble":"-0.0"}`},
		{1234567.5e30, `1.2345675e+36`, `1.2345675E+36`, `{"$numberDouble":"1.2345675E+36"}`},
		{2.5e-9, `2.5e-9`, `2.5E-09`, `{"$numberDouble":"2.5E-09"}`},
		{math.NaN(), `"NaN"`, `{"$numberDouble":"NaN"}`, `{"$numberDouble":"NaN"}`},
		{math.Inf(-1), `"-Infinity"`, `{"$numberDouble":"-Infinity"}`, `{"$numberDouble":"-Infinity"}`},
		{decimal(t, "1E+21"), `"1E+21"`, `{"$numberDecimal":"1E+21"}`, `{"$numberDecimal":"1E+21"}`},
		{decimal(t, "-12.500"), `"-12.500"`, `{"$numberDecimal":"-12.500"}`, `{"$numberDecimal":"-12.500"}`},
		{decimal(t, "NaN"), `"NaN"`, `{"$numberDecimal":"NaN"}`, `{"$numberDecimal":"NaN"}`},
		{id, `"650102030405060708090aff"`, `{"$oid":"650102030405060708090aff"}`, `{"$oid":"650102030405060708090aff"}`},
		{
			uuid, `"00112233-4455-6677-8899-aabbccddeeff"`,
			`{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}`, `{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}`,
		},
		{
			bson.Binary{Subtype: 4, Data: []byte{1}},
			`"AQ=="`,
			`{"$binary":{"base64":"AQ==","subType":"04"}}`, `{"$binary":{"base64":"AQ==","subType":"04"}}`,
		},
		{
			bson.Binary{Subtype: 2, Data: []byte{1}},
			`"AQ=="`,
			`{"$binary":{"base64":"AQ==","subType":"02"}}`, `{"$binary":{"base64":"AQ==","subType":"02"}}`,
		},
		{bson.DateTime(1_700_000_000_500), `"2023-11-14T22:13:20.500Z"`, `{"$date":"2023-11-14T22:13:20.500Z"}`, `{"$date":{"$numberLong":"1700000000500"}}`},
		{bson.DateTime(0), `"1970-01-01T00:00:00.000Z"`, `{"$date":"1970-01-01T00:00:00Z"}`, `{"$date":{"$numberLong":"0"}}`},
		{bson.DateTime(-1), `"1969-12-31T23:59:59.999Z"`, `{"$date":{"$numberLong":"-1"}}`, `{"$date":{"$numberLong":"-1"}}`},
		{bson.DateTime(253402300799999), `"9999-12-31T23:59:59.999Z"`, `{"$date":"9999-12-31T23:59:59.999Z"}`, `{"$date":{"$numberLong":"253402300799999"}}`},
		{bson.DateTime(253402300800000), `"+010000-01-01T00:00:00.000Z"`, `{"$date":{"$numberLong":"253402300800000"}}`, `{"$date":{"$numberLong":"253402300800000"}}`},
		{bson.DateTime(-62198755200000), `"-000001-01-01T00:00:00.000Z"`, `{"$date":{"$numberLong":"-62198755200000"}}`, `{"$date":{"$numberLong":"-62198755200000"}}`},
		{bson.DateTime(math.MinInt64), `"-292275055-05-16T16:47:04.192Z"`, `{"$date":{"$numberLong":"-9223372036854775808"}}`, `{"$date":{"$numberLong":"-9223372036854775808"}}`},
		{bson.DateTime(math.MaxInt64), `"+292278994-08-17T07:12:55.807Z"`, `{"$date":{"$numberLong":"9223372036854775807"}}`, `{"$date":{"$numberLong":"9223372036854775807"}}`},
		{true, `true`, `true`, `true`},
		{nil, `null`, `null`, `null`},
		{bson.A{}, `[]`, `[]`, `[]`},
		{bson.D{}, `{}`, `{}`, `{}`},
		{
			bson.A{int32(1), "b", bson.D{{Key: "c.$d", Value: nil}, {Key: "$c", Value: false}}},
			`[1,"b",{"c.$d":null,"$c":false}]`, `[1,"b",{"c.$d":null,"$c":false}]`, `[{"$numberInt":"1"},"b",{"c.$d":null,"$c":false}]`,
		},
		{
			"tab\t \"q\" \\ \x01 \x00 <é\u2028😀", `"tab\t \"q\" \\ \u0001 \u0000 <é` + "\u2028" + `😀"`,
			`"tab\t \"q\" \\ \u0001 \u0000 <é` + "\u2028" + `😀"`, `"tab\t \"q\" \\ \u0001 \u0000 <é` + "\u2028" + `😀"`,
		},
		{bson.Timestamp{T: 9, I: math.MaxUint32}, `{"$timestamp":{"t":9,"i":4294967295}}`, `{"$timestamp":{"t":9,"i":4294967295}}`, `{"$timestamp":{"t":9,"i":4294967295}}`},
		{
			bson.Regex{Pattern: `^"`, Options: "im"},
			`{"$regularExpression":{"pattern":"^\"","options":"im"}}`,
			`{"$regularExpression":{"pattern":"^\"","options":"im"}}`, `{"$regularExpression":{"pattern":"^\"","options":"im"}}`,
		},
		{bson.JavaScript("x"), `{"$code":"x"}`, `{"$code":"x"}`, `{"$code":"x"}`},
		{
			bson.CodeWithScope{Code: "x", Scope: bson.D{{Key: "a", Value: int32(1)}}},
			`{"$code":"x","$scope":{"a":1}}`,
			`{"$code":"x","$scope":{"a":1}}`, `{"$code":"x","$scope":{"a":{"$numberInt":"1"}}}`,
		},
		{
			bson.DBPointer{DB: "d.c", Pointer: id},
			`{"$dbPointer":{"$ref":"d.c","$id":{"$oid":"650102030405060708090aff"}}}`,
			`{"$dbPointer":{"$ref":"d.c","$id":{"$oid":"650102030405060708090aff"}}}`, `{"$dbPointer":{"$ref":"d.c","$id":{"$oid":"650102030405060708090aff"}}}`,
		},
		{bson.Symbol("s"), `"s"`, `{"$symbol":"s"}`, `{"$symbol":"s"}`},
		{bson.Undefined{}, `null`, `{"$undefined":true}`, `{"$undefined":true}`},
		{bson.MinKey{}, `{"$minKey":1}`, `{"$minKey":1}`, `{"$minKey":1}`},
		{bson.MaxKey{}, `{"$maxKey":1}`, `{"$maxKey":1}`, `{"$maxKey":1}`},
	} {
		for f, want := range map[Format]string{Plain: c.plain, Relaxed: c.relaxed, Canonical: c.canonical} {
			if got := form(t, Options{Format: f}, c.value); got != want {
				t.Errorf("format %d of %T:\ngot  %s\nwant %s", f, c.value, got, want)
			}
		}
	}
}

func TestOptionsChangeThePlainForm(t *testing.T) {
	t.Parallel()
	legacy := bson.Binary{Subtype: 3, Data: uuid.Data}
	for _, c := range []struct {
		options Options
		value   any
		want    string
	}{
		{Options{Int64Text: true}, int64(-5), `"-5"`},
		{Options{Int64Text: true}, int32(-5), `-5`},
		{Options{DecimalNumber: true}, decimal(t, "1.2E+40"), `1.2E+40`},
		{Options{DecimalNumber: true}, decimal(t, "Infinity"), `"Infinity"`},
		{Options{}, legacy, `"ABEiM0RVZneImaq7zN3u/w=="`},
		{Options{LegacyUUID: LegacyPython}, legacy, `"00112233-4455-6677-8899-aabbccddeeff"`},
		{Options{LegacyUUID: LegacyJava}, legacy, `"77665544-3322-1100-ffee-ddccbbaa9988"`},
		{Options{LegacyUUID: LegacyCSharp}, legacy, `"33221100-5544-7766-8899-aabbccddeeff"`},
		{Options{LegacyUUID: LegacyJava}, uuid, `"00112233-4455-6677-8899-aabbccddeeff"`},
		{Options{InvalidText: InvalidReplace}, "a\xff\xc3b", `"a` + "\uFFFD\uFFFD" + `b"`},
	} {
		if got := form(t, c.options, c.value); got != c.want {
			t.Errorf("%+v of %v: %s, want %s", c.options, c.value, got, c.want)
		}
	}
}

func TestRefusalsArePoisonAndNameTheByte(t *testing.T) {
	t.Parallel()
	deep := any(int32(1))
	for range maxDepth {
		deep = bson.A{deep}
	}
	for _, c := range []struct {
		options Options
		value   any
		fault   Fault
		offset  int
	}{
		{Options{}, "a\xffb", FaultText, 12},
		{Options{Format: Canonical}, "\xffb", FaultText, 11},
		{Options{NonFinite: NonFinitePoison}, math.NaN(), FaultNonFinite, 7},
		{Options{NonFinite: NonFinitePoison, DecimalNumber: true}, decimal(t, "-Infinity"), FaultNonFinite, 7},
		{Options{}, deep, FaultDepth, 7 * maxDepth},
		{Options{Format: BSON}, deep, FaultDepth, 7 * maxDepth},
	} {
		dst := []byte("before")
		got, err := New(c.options).AppendDocument(dst, document(t, bson.E{Key: "v", Value: c.value}))
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%+v: no error but %s", c.options, got)
		}
		if e.Fault != c.fault || e.Offset != c.offset || event.ClassOf(err) != event.Poison || string(got) != "before" {
			t.Errorf("fault %d at byte %d, want %d at %d (%v)", e.Fault, e.Offset, c.fault, c.offset, err)
		}
	}
}

func TestTheDeepestDocumentThatServersTakeIsWritten(t *testing.T) {
	t.Parallel()
	deep := any(int32(1))
	for range 199 {
		deep = bson.A{deep}
	}
	if got := form(t, Options{}, deep); got != strings.Repeat("[", 199)+"1"+strings.Repeat("]", 199) {
		t.Error(got)
	}
}
