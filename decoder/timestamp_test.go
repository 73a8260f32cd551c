package decoder

import (
	"math"
	"testing"
	"time"
)

func TestTimestampsOfAllShapesAreTheSameInstant(t *testing.T) {
	t.Parallel()
	at := func(s string) int64 {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixMicro()
	}
	for text, want := range map[string]int64{
		"2024-02-29 12:00:00+00":          at("2024-02-29T12:00:00Z"),
		"2024-02-29 17:30:00+05:30":       at("2024-02-29T12:00:00Z"),
		"2024-02-29 17:45:00+05:45":       at("2024-02-29T12:00:00Z"),
		"2024-02-29 09:00:00-03":          at("2024-02-29T12:00:00Z"),
		"2024-02-29 09:00:00-0300":        at("2024-02-29T12:00:00Z"),
		"2024-02-29T12:00:00Z":            at("2024-02-29T12:00:00Z"),
		"2024-02-29 12:00:00":             at("2024-02-29T12:00:00Z"),
		"2024-02-29 12:00:00.5+00":        at("2024-02-29T12:00:00.5Z"),
		"2024-02-29T12:00:00.123456789Z":  at("2024-02-29T12:00:00.123456Z"),
		"2024-02-29":                      at("2024-02-29T00:00:00Z"),
		"1900-01-01 05:53:28+05:53:28":    at("1900-01-01T00:00:00Z"),
		"1969-12-31 23:59:59.999999+00":   -1,
		"0001-01-01 00:00:00+00":          at("0001-01-01T00:00:00Z"),
		"0001-12-31 00:00:00+00 BC":       at("0001-01-01T00:00:00Z") - 86_400_000_000,
		"0044-03-15 12:00:00+00 BC":       time.Date(-43, 3, 15, 12, 0, 0, 0, time.UTC).UnixMicro(),
		"infinity":                        math.MaxInt64,
		"-infinity":                       math.MinInt64,
		"294276-12-31 23:59:59.999999+00": math.MaxInt64,
		"999999-01-01 00:00:00+00":        math.MaxInt64,
		"999999-01-01 00:00:00+00 BC":     math.MinInt64,
	} {
		if got, ok := parseTimestamp([]byte(text)); !ok || got != want {
			t.Errorf("%q: %d %t, want %d", text, got, ok, want)
		}
	}
	for _, bad := range []string{
		"", "tomorrow", "2024", "2024-1-1", "2024-01-01x", "2024-01-01 ", "2024-13-01 00:00:00", "2024-00-01", "2024-01-32",
		"2024-01-01 25:00:00", "2024-01-01 00:60:00", "2024-01-01 00:00:00+", "2024-01-01 00:00:00+0", "2024-01-01 00:00:00 AD",
		"2024-01-01 00:00:00.+00", "01.02.2024 00:00:00", "Infinity", "20240101", "1700000000", "2024-01-01 00:00:00+00 BC ",
	} {
		if v, ok := parseTimestamp([]byte(bad)); ok {
			t.Errorf("%q was taken for %d", bad, v)
		}
	}
}

func TestBinaryTimestampsPrintAndReadBack(t *testing.T) {
	t.Parallel()
	for pg, want := range map[int64]string{
		0: "2000-01-01 00:00:00+00", -1: "1999-12-31 23:59:59.999999+00", 1_500_000: "2000-01-01 00:00:01.5+00",
		math.MaxInt64: "infinity", math.MinInt64: "-infinity",
		time.Date(-43, 3, 15, 12, 0, 0, 0, time.UTC).UnixMicro() - epochShift: "0044-03-15 12:00:00+00 BC",
		9_223_371_331_199_999_999: "294276-12-31 23:59:59.999999+00", // the last that Postgres can hold
		-211_813_488_000_000_000:  "4714-11-24 00:00:00+00 BC",       // the first
	} {
		got := string(appendTimestamp(nil, pg, true))
		if got != want {
			t.Errorf("%d: %q, want %q", pg, got, want)
		}
		if back, ok := parseTimestamp([]byte(got)); !ok || back != unixMicros(pg) {
			t.Errorf("%d: %q reads back as %d %t, want %d", pg, got, back, ok, unixMicros(pg))
		}
	}
}

func TestEveryDayOfTheCalendarAgreesWithPackageTime(t *testing.T) {
	t.Parallel()
	for day := int64(-1_721_000); day < 3_000_000; day += 37 {
		micros := day*86_400_000_000 + day%86_400_000_000
		text := string(appendTimestamp(nil, micros-epochShift, true))
		if got, ok := parseTimestamp([]byte(text)); !ok || got != micros {
			t.Fatalf("day %d: %q reads back as %d %t, want %d", day, text, got, ok, micros)
		}
		at := time.UnixMicro(micros).UTC()
		if year := at.Year(); year > 0 && year < 10_000 {
			if want := at.Format("2006-01-02 15:04:05.999999+00"); text != want {
				t.Fatalf("day %d: %q, want %q", day, text, want)
			}
		}
	}
}
