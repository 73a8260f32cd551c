package router

import (
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

func TestWrongOptionsAreRefusedWithTheNearestName(t *testing.T) {
	t.Parallel()
	table := func(rts ...Route) Options { return Options{Routes: rts} }
	headers := func(hs ...Header) Options { return Options{Headers: hs} }
	for _, c := range []struct {
		name   string
		preset event.Preset
		o      Options
		says   string
	}{
		{"twice", event.Forze, table(Route{Match: "a"}, Route{Match: "b"}, Route{Match: "a"}), `route "a" stands twice in the table, at places 1 and 3`},
		{"two stars", event.Forze, table(Route{Match: "*"}, Route{Match: "*"}), `route "*" stands twice`},
		{"empty", event.Forze, table(Route{}), "route 1: match is empty"},
		{"star without dot", event.Forze, table(Route{Match: "a*"}), `match "a*": the star may only stand alone or after a dot`},
		{"star in the middle", event.Forze, table(Route{Match: "a.*.b"}), "the star may only stand alone"},
		{"two in one", event.Forze, table(Route{Match: "a.*.*"}), "the star may only stand alone"},
		{"dot star", event.Forze, table(Route{Match: ".*"}), "has no prefix"},
		{"variable", event.Forze, table(Route{Match: "a", Topic: "x.{tennant}"}), `topic "x.{tennant}" uses {tennant}, did you mean {tenant}?`},
		{"open brace", event.Forze, table(Route{Match: "a", Topic: "x.{route"}), "has a { without a }"},
		{"closing brace", event.Forze, table(Route{Match: "a", Topic: "x}"}), "contains '}'"},
		{"space", event.Forze, table(Route{Match: "a", Topic: "x {route}"}), "contains ' '"},
		{"dots", event.Forze, table(Route{Match: "a", Topic: ".."}), `topic ".." is a name that Kafka refuses`},
		{"long", event.Forze, table(Route{Match: "a", Topic: strings.Repeat("x", 250)}), "name of 250 characters: Kafka allows 249"},
		{"no column", event.Debezium, table(Route{Match: "a", Topic: "{tenant}"}), `needs {tenant}, but schema debezium has no column for tenant_id`},
		{"fallback", event.Forze, table(Route{Match: "a", KeyFallback: "eventid"}), `key_fallback "eventid" is unknown, did you mean event_id?`},
		{"null", event.Forze, table(Route{Match: "a", NullPayload: "poision"}), "did you mean poison?"},
		{"envelope", event.Forze, table(Route{Match: "a", Envelope: "cloudevent"}), "did you mean cloudevents?"},
		{"time", event.Forze, table(Route{Match: "a", Timestamp: "ocurred_at"}), "did you mean occurred_at?"},
		{"partition", event.Forze, table(Route{Match: "a", Partition: "keys"}), "did you mean key?"},
		{"encryption", event.Forze, table(Route{Match: "a", Encryption: "endtoend"}), "did you mean end_to_end?"},
		{"hidden cipher", event.Forze, table(Route{Match: "a", Envelope: EnvelopeJSON, Encryption: EncryptionEndToEnd}), "hides ciphertext"},
		{"header twice", event.Forze, headers(Header{"a", "x"}, Header{"a", "y"}), `header "a" is configured twice`},
		{"header of ours", event.Forze, headers(Header{"forze_hlc", "x"}), `header "forze_hlc" is written by walrelay itself`},
		{"header of theirs", event.Forze, headers(Header{"forze_key", "x"}), "written by walrelay itself"},
		{"header prefix", event.Debezium, headers(Header{"walrelay_x", "x"}), "written by walrelay itself"},
		{"header type", event.Basic, headers(Header{"type", "x"}), "written by walrelay itself"},
		{"traceparent", event.Forze, headers(Header{"traceparent", "x"}), "written by walrelay itself"},
		{"ce header", event.Basic, Options{Headers: []Header{{"ce_id", "x"}}, Routes: []Route{{Match: "*", Envelope: EnvelopeCloudEvents}}}, "written by walrelay itself"},
		{"no header name", event.Basic, headers(Header{"", "x"}), `the header made of column "x" has no name`},
		{"no header column", event.Basic, headers(Header{"x", ""}), `header "x" has no column`},
		{"header bytes", event.Basic, headers(Header{"\xff", "x"}), "is not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.o.Source, c.o.Schema = "s", schema(t, c.preset)
			_, err := New(c.o)
			if err == nil {
				t.Fatal("accepted")
			}
			if event.ClassOf(err) != event.Halt || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "remedy") {
				t.Errorf("got %v\nwant …%s…", err, c.says)
			}
		})
	}
}

func TestAllWrongOptionsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Options{Routes: []Route{{Match: "a*", Envelope: "x"}}, Headers: []Header{{}}})
	for _, want := range []string{`schema ""`, "the source has no name", `match "a*"`, `envelope "x"`, "has no name"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestFreeHeaderNamesAreAccepted(t *testing.T) {
	t.Parallel()
	mustNew(t, Options{Source: "s", Schema: schema(t, event.Debezium), Headers: []Header{
		{"traceparent", "trace"}, {"eventType", "type"}, {"ce_id", "x"}, {"forze_hlc", "y"},
	}})
}

func TestTopicsNamesWhatIsFixed(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "s", Schema: schema(t, event.Forze), Routes: []Route{{Match: "a", Topic: "x"}, {Match: "b.*", Topic: "x.{route}"}}})
	if names, open := r.Topics(); len(names) != 1 || names[0] != "x" || !open {
		t.Errorf("got %v, %v", names, open)
	}
}
