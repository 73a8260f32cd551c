package bsonjson

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"
)

func TestPlainIsAlwaysJSON(t *testing.T) {
	t.Parallel()
	encoders := []*Encoder{
		{},
		New(Options{DecimalNumber: true, Int64Text: true, LegacyUUID: LegacyJava}),
		New(Options{LegacyUUID: LegacyCSharp}),
	}
	rapid.Check(t, func(t *rapid.T) {
		raw, err := bson.Marshal(documents(3).Draw(t, "document"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range encoders {
			got, err := e.AppendDocument(nil, raw)
			if err != nil || !json.Valid(got) {
				t.Fatalf("%v: %s", err, got)
			}
		}
	})
}

func TestDoublesReadBackAsTheyWere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if rapid.Bool().Draw(t, "whole") {
			f = float64(rapid.Int64().Draw(t, "int"))
		}
		if f != f || math.IsInf(f, 0) {
			return
		}
		text := string(appendPlain(nil, f))
		back, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(f) || !json.Valid([]byte(text)) {
			t.Fatalf("%v is written %s and read %v (%v)", f, text, back, err)
		}
		if shortest := strconv.FormatFloat(f, 'e', -1, 64); significant(text) != significant(shortest) {
			t.Fatalf("%s has other digits than %s", text, shortest)
		}
	})
}

// significant gives the digits of a number without point, exponent and outer zeros.
func significant(s string) string {
	mantissa, _, _ := strings.Cut(s, "e")
	return strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "-0")
}

func TestDatesAreThoseOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(-62167219200000, 253402300799999).Draw(t, "ms")
		want := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
		if got := string(appendTime(nil, ms, true)); got != want {
			t.Fatalf("%d is %s, want %s", ms, got, want)
		}
	})
}

func TestCoefficientsTooLargeToBeValidAreZero(t *testing.T) {
	t.Parallel()
	const high = 0x3040<<48 | 1<<49 - 1 // exponent 0, all bits of the coefficient set
	if got := string(appendDecimal(nil, high, math.MaxUint64)); got != "0" {
		t.Error(got)
	}
}
