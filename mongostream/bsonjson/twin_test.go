package bsonjson

import (
	"math"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

// The driver's own encoder is the slow twin of both Extended JSON formats. Left out
// is where it differs: it escapes U+2028 and U+2029, it cuts zeros at the end of
// milliseconds (the specification wants three digits), it sorts the options of a
// regex, it does not escape the namespace of a DBPointer, and it prints
// coefficients of more than 34 digits.
func TestExtendedFormsEqualTheDrivers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		doc := documents(3).Draw(t, "document")
		raw, err := bson.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []Format{Relaxed, Canonical} {
			want, err := bson.MarshalExtJSON(doc, f == Canonical, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := New(Options{Format: f}).AppendDocument([]byte("x"), raw)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "x"+string(want) {
				t.Fatalf("format %d\ngot    %s\ndriver %s", f, got[1:], want)
			}
		}
	})
}

func documents(depth int) *rapid.Generator[bson.D] {
	return rapid.Custom(func(t *rapid.T) bson.D {
		return bson.D(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) bson.E {
			return bson.E{Key: names.Draw(t, "name"), Value: values(depth).Draw(t, "value")}
		}), 0, 5).Draw(t, "members"))
	})
}

var (
	texts = rapid.StringOf(rapid.RuneFrom([]rune("aé\"\\/<&>\x00\x1f\x7f\b\f\n\r\t €😀\uFFFD")).Filter(
		func(r rune) bool { return r != '\u2028' && r != '\u2029' }))
	names = rapid.StringMatching(`[a-z$."\\é ]{0,20}`)
	dates = rapid.Custom(func(t *rapid.T) bson.DateTime {
		ms := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-1e13, 1e13), rapid.Int64Range(253402300790000, 253402300810000)).Draw(t, "ms")
		if ms%1000 != 0 && ms%10 == 0 && ms < math.MaxInt64 {
			ms++
		}
		return bson.DateTime(ms)
	})
	decimals = rapid.Custom(func(t *rapid.T) bson.Decimal128 {
		high, low := rapid.Uint64().Draw(t, "high"), rapid.Uint64().Draw(t, "low")
		if rapid.Bool().Draw(t, "small") { // exponents and coefficients that people use
			high = 0x3040000000000000 + uint64(rapid.IntRange(-40, 5).Draw(t, "exponent"))<<49 + high&(1<<63)
			low >>= rapid.IntRange(0, 63).Draw(t, "bits")
		}
		if high>>61&3 != 3 {
			high &^= 1 << 48 // keeps the coefficient below 10^34
		}
		return bson.NewDecimal128(high, low)
	})
)

func values(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		texts.AsAny(), rapid.Int32().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny(),
		rapid.SampledFrom([]any{nil, math.NaN(), math.Inf(1), math.Inf(-1), bson.MinKey{}, bson.MaxKey{}, bson.Undefined{}}),
		dates.AsAny(), decimals.AsAny(),
		rapid.Custom(func(t *rapid.T) any {
			return bson.Binary{Subtype: rapid.Byte().Draw(t, "subtype"), Data: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data")}
		}),
		rapid.Custom(func(t *rapid.T) any {
			return bson.ObjectID(rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "id"))
		}),
		rapid.Custom(func(t *rapid.T) any {
			return bson.Timestamp{T: rapid.Uint32().Draw(t, "t"), I: rapid.Uint32().Draw(t, "i")}
		}),
		rapid.Custom(func(t *rapid.T) any { return bson.Regex{Pattern: names.Draw(t, "pattern"), Options: "imsx"} }),
		rapid.Custom(func(t *rapid.T) any { return bson.JavaScript(texts.Draw(t, "code")) }),
		rapid.Custom(func(t *rapid.T) any { return bson.Symbol(texts.Draw(t, "symbol")) }),
	}
	if depth > 0 {
		kinds = append(kinds,
			documents(depth-1).AsAny(),
			rapid.Custom(func(t *rapid.T) any { return bson.A(rapid.SliceOfN(values(depth-1), 0, 5).Draw(t, "items")) }),
			rapid.Custom(func(t *rapid.T) any {
				return bson.CodeWithScope{Code: bson.JavaScript(texts.Draw(t, "code")), Scope: withoutOldBinary(documents(depth-1).Draw(t, "scope")).(bson.D)}
			}))
	}
	return rapid.OneOf(kinds...)
}

// withoutOldBinary makes binary of subtype 2 plain. Such binary has its length a second time in
// its data, which the driver takes off everywhere but in a scope.
func withoutOldBinary(v any) any {
	switch v := v.(type) {
	case bson.D:
		for i := range v {
			v[i].Value = withoutOldBinary(v[i].Value)
		}
	case bson.A:
		for i := range v {
			v[i] = withoutOldBinary(v[i])
		}
	case bson.CodeWithScope:
		v.Scope = withoutOldBinary(v.Scope).(bson.D)
		return v
	case bson.Binary:
		if v.Subtype == 2 {
			v.Subtype = 0
		}
		return v
	}
	return v
}
