package router

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
)

// Cases C21 and C22: what the record shows for what the server prints.
func TestTimestampTextIsNeverLost(t *testing.T) {
	t.Parallel()
	const commit = int64(1_800_000_000_123)
	for _, c := range []struct {
		name, raw, header string
		millis            int64 // commit: it fell back
	}{
		{"utc", "2026-06-01 12:00:00.000007+00", "2026-06-01T12:00:00.000007+00:00", 1780315200000},
		{"no fraction", "2026-06-01 12:00:00+00", "2026-06-01T12:00:00+00:00", 1780315200000},
		{"millis", "2026-06-01 12:00:00.123+00", "2026-06-01T12:00:00.123000+00:00", 1780315200123},
		{"kolkata", "2026-06-01 17:30:00.000007+05:30", "2026-06-01T12:00:00.000007+00:00", 1780315200000},
		{"kathmandu", "2026-06-01 17:45:00+05:45", "2026-06-01T12:00:00+00:00", 1780315200000},
		{"amsterdam", "2026-06-01 14:00:00+02", "2026-06-01T12:00:00+00:00", 1780315200000},
		{"west", "2026-06-01 08:30:00-03:30", "2026-06-01T12:00:00+00:00", 1780315200000},
		{"other day", "2026-01-01 00:30:00+01", "2025-12-31T23:30:00+00:00", 1767223800000},
		{"calcutta mean time", "1900-01-01 05:53:28+05:53:28", "1900-01-01T00:00:00+00:00", commit},
		{"amsterdam mean time", "1900-01-01 00:19:32+00:19:32", "1900-01-01T00:00:00+00:00", commit},
		{"without zone", "2026-06-01 12:00:00", "2026-06-01T12:00:00+00:00", 1780315200000},
		{"iso z", "2026-06-01T12:00:00Z", "2026-06-01T12:00:00+00:00", 1780315200000},
		{"iso offset", "2026-06-01T15:00:00.5+03:00", "2026-06-01T12:00:00.500000+00:00", 1780315200500},
		{"no seconds", "2026-06-01 12:00+00", "2026-06-01T12:00:00+00:00", 1780315200000},
		{"nanoseconds", "2026-06-01T12:00:00.123456789Z", "2026-06-01T12:00:00.123456789Z", 1780315200123},
		{"nine digits, six needed", "2026-06-01T12:00:00.123456000Z", "2026-06-01T12:00:00.123456+00:00", 1780315200123},
		{"leap day", "2024-02-29 00:00:00+00", "2024-02-29T00:00:00+00:00", 1709164800000},
		{"epoch", "1970-01-01 00:00:00+00", "1970-01-01T00:00:00+00:00", 0},
		{"before the epoch", "1969-12-31 23:59:59.999999+00", "1969-12-31T23:59:59.999999+00:00", commit},
		{"year 9999", "9999-12-31 23:59:59.999999+00", "9999-12-31T23:59:59.999999+00:00", 253402300799999},
		{"year 1", "0001-01-01 00:00:00+00", "0001-01-01T00:00:00+00:00", commit},
		{"beyond 9999 in utc only", "9999-12-31 23:30:00-01", "9999-12-31 23:30:00-01", commit},
		{"back below 9999 in utc", "10000-01-01 00:30:00+01", "9999-12-31T23:30:00+00:00", 253402299000000},
		{"last of postgres", "294276-12-31 23:59:59.999999+00", "294276-12-31 23:59:59.999999+00", commit},
		{"bc", "0044-03-15 12:00:00+00 BC", "0044-03-15 12:00:00+00 BC", commit},
		{"bc without zone", "0044-03-15 12:00:00 BC", "0044-03-15 12:00:00 BC", commit},
		{"bc that is ad in utc", "0001-12-31 23:30:00-01 BC", "0001-01-01T00:30:00+00:00", commit},
		{"first of postgres", "4714-11-24 00:00:00+00 BC", "4714-11-24 00:00:00+00 BC", commit},
		{"infinity", "infinity", "infinity", commit},
		{"minus infinity", "-infinity", "-infinity", commit},
		{"bigint millis", "1780315200123", "2026-06-01T12:00:00.123000+00:00", 1780315200123},
		{"negative millis", "-1", "1969-12-31T23:59:59.999000+00:00", commit},
		{"no such day", "2026-02-29 00:00:00+00", "2026-02-29 00:00:00+00", commit},
		{"no such month", "2026-13-01 00:00:00+00", "2026-13-01 00:00:00+00", commit},
		{"year 0", "0000-01-01 00:00:00+00", "0000-01-01 00:00:00+00", commit},
		{"sql style", "06/01/2026 12:00:00 UTC", "06/01/2026 12:00:00 UTC", commit},
		{"text after", "2026-06-01 12:00:00+00 ?", "2026-06-01 12:00:00+00 ?", commit},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := mustNew(t, Options{Source: "s", Schema: schema(t, "forze"), Routes: []Route{{Match: "*", Timestamp: TimestampOccurredAt}}})
			ev := bareEvent()
			ev.Fields[event.OccurredAt] = []byte(c.raw)
			ev.CommitMicros = commit*1000 + 999
			rec, err := route(r, &ev)
			if err != nil {
				t.Fatal(err)
			}
			if got := headerText(&rec, headerForzeOccurredAt); got != c.header {
				t.Errorf("header: got %q, want %q", got, c.header)
			}
			if rec.Millis != c.millis || rec.FallbackMillis != commit {
				t.Errorf("millis: got %d and %d, want %d and %d", rec.Millis, rec.FallbackMillis, c.millis, commit)
			}
		})
	}
}

func TestNoTruncatedTimestampPanicsOrTurnsIntoAnotherDay(t *testing.T) {
	t.Parallel()
	const full = "2026-06-01 17:45:00.123456+05:53:28 BC"
	for n := range len(full) {
		at, ok := parseTimestamp([]byte(full[:n]))
		if ok && n > 4 && time.Unix(at.sec, 0).UTC().Year() != 2026 {
			t.Errorf("%q was read as %v", full[:n], time.Unix(at.sec, 0).UTC())
		}
	}
}

func FuzzTimestampAgreesWithTheTimePackage(f *testing.F) {
	for _, s := range []string{
		"2026-06-01 12:00:00.000007+00", "1900-01-01 05:53:28+05:53:28", "0044-03-15 12:00:00+00 BC", "-infinity",
		"294276-12-31 23:59:59.999999+00", "2026-06-01T12:00:00Z", "1780315200123", "-1", "2024-02-29 00:00:00-12:30",
	} {
		f.Add(s)
	}
	layouts := []string{"2006-01-02 15:04:05-07", "2006-01-02 15:04:05-07:00", "2006-01-02 15:04:05-07:00:00", "2006-01-02T15:04:05Z07:00", "2006-01-02 15:04:05"}
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := parseTimestamp([]byte(s))
		if ok && at.iso() {
			text := at.appendISO(nil)
			again, ok := parseTimestamp(text)
			if !ok || again != at {
				t.Fatalf("%q became %q, which reads as %+v, not %+v", s, text, again, at)
			}
			if _, err := time.Parse(time.RFC3339, string(text)); err != nil {
				t.Fatalf("%q became %q: %v", s, text, err)
			}
		}
		for _, l := range layouts {
			// What time.Parse reads and we do not is passed on as it is; but where both
			// read, they agree. Year 0 exists for time.Parse only.
			if want, err := time.Parse(l, s); err == nil && ok && want.Unix() != at.sec {
				t.Fatalf("%q: got %d, time.Parse has %d", s, at.sec, want.Unix())
			}
		}
	})
}
