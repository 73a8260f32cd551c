package mongo

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

func TestAFenceIsATimeAndAToken(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 5, 0, 0, 123_000_000, time.FixedZone("", 3600))
	f := fenceOf(at, "0f8c")
	if f != "2026-12-01T04:00:00.123Z 0f8c" || tokenOf(f) != "0f8c" {
		t.Fatalf("%q %q", f, tokenOf(f))
	}
	if got, endless, err := parseMoment(string(f)); !got.Equal(at) || endless || err != nil {
		t.Fatal(got, endless, err)
	}
	for _, f := range []outbox.Fence{"", "x", "2026-12-01T04:00:00.123Z", "2026-12-01T04:00:00.123Z "} {
		if tokenOf(f) != "none" {
			t.Errorf("%q has the token %q", f, tokenOf(f))
		}
	}
}

func TestTheEndOfTheLogIsAboveAllThatHappened(t *testing.T) {
	t.Parallel()
	if got := tokenAfter(bson.Timestamp{T: 0x6b0e5c1d, I: 0x66}); got != event.AtToken("826B0E5C1D00000067") {
		t.Fatal(got)
	}
}

func TestATimestampIsReadAsPeopleWriteIt(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 8, 21, 10, 15, 0, 0, time.UTC)
	for _, s := range []string{
		"2026-08-21 10:15:00+00", "2026-08-21T10:15:00Z", "2026-08-21 10:15", "2026-08-21 10:15+00", "2026-08-21 12:15:00.000+02:00", "2026-08-21T10:15:00.0", "2026-08-21 10:15:00",
	} {
		if got, err := parseTimestamp(s); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	if got, err := parseTimestamp("2026-08-21"); err != nil || !got.Equal(want.Truncate(24*time.Hour)) {
		t.Error(got, err)
	}
	for _, s := range []string{"", "yesterday", "2026-13-01", "10:15"} {
		if _, err := parseTimestamp(s); event.ClassOf(err) != event.Halt {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// However many keys are held, the command stays one that the server takes.
func TestAConditionOnKeysFitsIntoACommand(t *testing.T) {
	t.Parallel()
	schema, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &layout{schema: schema}
	keys := make([]string, 500_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
	}
	doc, err := bson.Marshal(op("$or", l.keyIn(keys)))
	if err != nil || len(doc) > 15<<20 || len(doc) < 5<<20 {
		t.Fatalf("%d bytes: %v", len(doc), err)
	}
}
