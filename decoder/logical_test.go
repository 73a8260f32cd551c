package decoder

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/event"
)

func logical(prefix, content string) *LogicalMessage {
	return &LogicalMessage{Transactional: true, LSN: sampleLSN + 8, Prefix: []byte(prefix), Content: []byte(content)}
}

// testID is what a message without an event id gets at testTx.
var testID = uuid.NewSHA1(messageNamespace, fmt.Appendf(nil, "%s/%s/%d", testSystem, sampleLSN, 3)).String()

func TestMessageIDsNeverChange(t *testing.T) {
	t.Parallel()
	// Frozen: applications have stored these.
	const want = "a7bbaef6-8248-5305-9887-5e563c4abbc9"
	if got := string(appendMessageID(nil, "7512345678901234567", 0x16_B374D848, 3)); got != want || got != testID {
		t.Errorf("got %s, want %s and %s", got, want, testID)
	}
	long := strings.Repeat("9", 300)
	twin := uuid.NewSHA1(messageNamespace, []byte(long+"/0/0/0")).String()
	if got := string(appendMessageID(nil, long, 0, 0)); got != twin {
		t.Errorf("got %s, want %s", got, twin)
	}
}

func TestPrefixIsComparedByteForByte(t *testing.T) {
	t.Parallel()
	m := newTestMapper(t, event.Forze)
	for _, p := range []string{"", "audit", "outbox2", "OUTBOX", "out", "outbox2/orders", "xoutbox", "outbox ", "Outbox/orders"} {
		if o, _, err := m.Message(logical(p, "no JSON"), testTx(), nil, nil); o != IgnoredPrefix || err != nil {
			t.Errorf("%q: %s %v", p, o, err)
		}
	}
	none := newTestMapper(t, event.Forze, func(o *MapperOptions) { o.Messages.Prefixes = nil })
	if o, _, _ := none.Message(logical("outbox", "{}"), testTx(), nil, nil); o != IgnoredPrefix {
		t.Error(o)
	}
}

func TestRouteAndKeyComeFromThePrefix(t *testing.T) {
	t.Parallel()
	m := newTestMapper(t, event.Forze, func(o *MapperOptions) { o.Messages.Prefixes = []string{"outbox", "outbox/eu"} })
	for _, c := range []struct{ prefix, relation, route, key string }{
		{"outbox/orders", "outbox", "orders", "-"},
		{"outbox/orders/k-1", "outbox", "orders", "k-1"},
		{"outbox/orders/a/b//c", "outbox", "orders", "a/b//c"},
		{"outbox/orders/", "outbox", "orders", ""},
		{"outbox/", "outbox", "", "-"},
		{"outbox/eu/orders/k", "outbox/eu", "orders", "k"},
		{"outbox/europe/k", "outbox", "europe", "k"},
	} {
		for _, content := range []string{"", "\x00\xff not JSON", `{"a":1}`} {
			var ev event.Event
			o, _, err := m.Message(logical(c.prefix, content), testTx(), &ev, nil)
			if o != Publish || err != nil {
				t.Fatalf("%s: %s %v", c.prefix, o, err)
			}
			key := "-"
			if ev.Fields[event.Key] != nil {
				key = string(ev.Fields[event.Key])
			}
			if ev.Relation != c.relation || string(ev.Fields[event.Route]) != c.route || key != c.key {
				t.Errorf("%s: relation %q, route %q, key %q", c.prefix, ev.Relation, ev.Fields[event.Route], key)
			}
			if ev.Fields[event.Payload] == nil || string(ev.Fields[event.Payload]) != content || string(ev.Fields[event.EventID]) != testID {
				t.Errorf("%s: payload %q, id %q", c.prefix, ev.Fields[event.Payload], ev.Fields[event.EventID])
			}
		}
	}
	var ev event.Event
	empty := &LogicalMessage{Transactional: true, Prefix: []byte("outbox/orders")}
	if _, _, _ = m.Message(empty, testTx(), &ev, nil); ev.Fields[event.Payload] == nil {
		t.Error("an empty payload became NULL")
	}
}

func TestNonTransactionalMessagesAreIgnoredUnlessAllowed(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"outbox", "outbox/orders"} {
		msg := logical(prefix, `{}`)
		msg.Transactional = false
		var ev event.Event
		if o, _, err := newTestMapper(t, event.Forze).Message(msg, testTx(), &ev, nil); o != IgnoredNonTransactional || err != nil {
			t.Error(o, err)
		}
		allow := newTestMapper(t, event.Forze, func(o *MapperOptions) { o.Messages.AllowNonTransactional = true })
		if o, _, err := allow.Message(msg, testTx(), &ev, nil); o != Publish || err != nil || !ev.NonTransactional {
			t.Error(o, err, ev.NonTransactional)
		}
		msg.Transactional = true
		if o, _, err := allow.Message(msg, testTx(), &ev, nil); o != Publish || err != nil || ev.NonTransactional {
			t.Error(o, err, ev.NonTransactional)
		}
	}
}

func TestObjectMembersBecomeFields(t *testing.T) {
	t.Parallel()
	payload := `{ "n":9007199254740993 , "e":1e400,"n":-0.0, "s":"\ud800\u0000\/" }`
	for _, c := range []struct {
		name    string
		preset  event.Preset
		content string
		want    map[string]string
	}{
		{"forze by columns", event.Forze, `{"id":"row","event_id":"e-1","outbox_route":"orders","ordering_key":"k","event_type":"t",
			"payload": ` + payload + ` ,"hlc":111411200000003,"tenant_id":null,"traceparent":"00-x","status":"pending"}`, map[string]string{
			"event_id": "e-1", "route": "orders", "key": "k", "type": "t", "payload": payload, "hlc": "111411200000003",
			"traceparent": "00-x", "status": "pending",
		}},
		{"forze by fields", event.Forze, `{"route":"orders","key":"k","type":"t","payload":[1 ,2],"aggregate_version":12345678901234567890}`, map[string]string{
			"event_id": testID, "route": "orders", "key": "k", "type": "t", "payload": "[1 ,2]", "aggregate_version": "12345678901234567890",
		}},
		{"debezium", event.Debezium, `{"id":"e-1","aggregatetype":"order","aggregateid":7,"type":"T","payload":"text"}`, map[string]string{
			"event_id": "e-1", "route": "order", "key": "7", "type": "T", "payload": `"text"`,
		}},
		{"basic", event.Basic, `{"id":"e-1","aggregate_type":"order","aggregate_id":"7","event_type":"T","payload":true}`, map[string]string{
			"event_id": "e-1", "route": "order", "key": "7", "type": "T", "payload": "true",
		}},
		{"escapes", event.Forze, `{"ro\u0075te":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00","key":"","payload":null}`, map[string]string{
			"event_id": testID, "route": "a\"\\/\b\f\n\r\té😀", "key": "", "payload": "null",
		}},
		{"nothing", event.Forze, " \t\r\n{ } ", map[string]string{"event_id": testID}},
		{"empty id", event.Forze, `{"event_id":""}`, map[string]string{"event_id": testID}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var ev event.Event
			o, _, err := newTestMapper(t, c.preset).Message(logical("outbox", c.content), testTx(), &ev, nil)
			if o != Publish || err != nil {
				t.Fatal(o, err)
			}
			expectFields(t, &ev, c.want)
			if ev.Relation != "outbox" || ev.Commit != event.AtLSN(sampleLSN) || ev.Ordinal != 3 || ev.CommitMicros != commitAt {
				t.Errorf("place: %+v", ev)
			}
		})
	}
}

func TestColumnNameWinsOverAFieldOfThatName(t *testing.T) {
	t.Parallel()
	m := newTestMapper(t, event.Forze, func(o *MapperOptions) {
		o.Schema = schemaOf(t, event.Forze, map[event.Field]string{event.Key: "route", event.Type: "headers"})
		o.ExtraColumns = []string{"shop", "key", "shop"}
	})
	var ev event.Event
	o, _, err := m.Message(logical("outbox", `{"outbox_route":"r","route":"k","headers":"t","shop":5,"key":"x"}`), testTx(), &ev, nil)
	if o != Publish || err != nil {
		t.Fatal(o, err)
	}
	expectFields(t, &ev, map[string]string{"event_id": testID, "route": "r", "key": "k", "type": "t"})
	if fmt.Sprintf("%s", ev.Extra) != "[5 x 5]" {
		t.Errorf("extra %s", ev.Extra)
	}
}

func TestHeadersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"headers": {`)
	var want []string
	for i := range 100 {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `"h\u002d%d" : "v\n%d"`, 999-i, i)
		want = append(want, fmt.Sprintf("h-%d=v\n%d", 999-i, i))
	}
	b.WriteString(`}, "route": "after"}`)
	m := newTestMapper(t, event.Forze)
	for range 2 {
		var ev event.Event
		o, _, err := m.Message(logical("outbox", b.String()), testTx(), &ev, nil)
		if o != Publish || err != nil {
			t.Fatal(o, err)
		}
		var got []string
		for _, h := range ev.Headers {
			got = append(got, h.Key+"="+string(h.Value))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || string(ev.Fields[event.Route]) != "after" {
			t.Errorf("got %q", got)
		}
	}
	var ev event.Event
	if o, _, err := m.Message(logical("outbox", `{"headers":null}`), testTx(), &ev, nil); o != Publish || err != nil || len(ev.Headers) != 0 {
		t.Error(o, err)
	}
}

func TestPoisonMessagesSayWhyAndKeepTheirKey(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	many.WriteString(`"h":"",`)
	for i := range 40 {
		many.WriteString(fmt.Sprintf(`"h%d":"",`, i))
	}
	for _, c := range []struct{ name, content, want string }{
		{"unknown", `{"payload":1,"secret_thing":"x","key":"k-1"}`, `member "secret_thing" is unknown`},
		{"unknown near", `{"payload":1,"paylod":"x","key":"k-1"}`, `did you mean "payload"?`},
		{"twice", `{"payload":1,"key":"k-1","payload":2}`, `member "payload" comes twice`},
		{"two names", `{"payload":1,"key":"k-1","ordering_key":"k-2"}`, `member "ordering_key" comes twice, or under two names`},
		{"headers twice", `{"payload":1,"headers":{},"headers":{},"key":"k-1"}`, `member "headers" comes twice`},
		{"nested route", `{"payload":1,"route":{"a":[1]},"key":"k-1"}`, `member "route" is an object or an array`},
		{"NUL", `{"payload":1,"route":"a\u0000b","key":"k-1"}`, `member "route" contains U+0000`},
		{"high half", `{"payload":1,"route":"\ud83d","key":"k-1"}`, `member "route" contains half a surrogate pair`},
		{"high half then text", `{"payload":1,"route":"\ud83d\n12345","key":"k-1"}`, `half a surrogate pair`},
		{"two high halves", `{"payload":1,"route":"\ud83d\ud83d","key":"k-1"}`, `half a surrogate pair`},
		{"low half", `{"payload":1,"route":"\ude00","key":"k-1"}`, `half a surrogate pair`},
		{"not UTF-8", "{\"payload\":1,\"route\":\"\xff\",\"key\":\"k-1\"}", `member "route" is not valid UTF-8`},
		{"bad name", `{"payload":1,"\u0000":"","key":"k-1"}`, `name of a member contains U+0000`},
		{"headers array", `{"payload":1,"headers":[],"key":"k-1"}`, `no object of strings`},
		{"header number", `{"payload":1,"headers":{"a":1},"key":"k-1"}`, `header "a" is no string`},
		{"header null", `{"payload":1,"headers":{"a":null},"key":"k-1"}`, `header "a" is no string`},
		{"header twice", `{"payload":1,"headers":{"a":"","\u0061":""},"key":"k-1"}`, `header "a" comes twice`},
		{"header twice among many", `{"payload":1,"headers":{` + many.String() + `"h":""},"key":"k-1"}`, `header "h" comes twice`},
		{"header twice behind many", `{"payload":1,"headers":{` + many.String() + `"late":"","late":""},"key":"k-1"}`, `header "late" comes twice`},
		{"header NUL", `{"payload":1,"headers":{"a":"\u0000"},"key":"k-1"}`, `header "a" contains U+0000`},
		{"header name NUL", `{"payload":1,"headers":{"\u0000":""},"key":"k-1"}`, `name of a header contains U+0000`},
		{"not due", `{"payload":1,"available_at":"infinity","key":"k-1"}`, `no row to wait in`},
		{"unreadable time", `{"payload":1,"available_at":"soon","key":"k-1"}`, `available_at is no timestamp`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var ev event.Event
			o, _, err := newTestMapper(t, event.Forze).Message(logical("outbox", c.content), testTx(), &ev, nil)
			if o != Refused {
				t.Error(o)
			}
			expectError(t, err, event.Poison, AnchorPoisonMessage, c.want, sampleLSN.String(), `"outbox"`)
			if string(ev.Fields[event.Key]) != "k-1" || string(ev.Fields[event.Payload]) != "1" || string(ev.Fields[event.EventID]) != testID {
				t.Errorf("the refused event is incomplete: %q", fieldsOf(&ev))
			}
		})
	}
}

func TestMalformedContentIsParkedWholeAndNeverShown(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", maxDepth)
	for _, c := range []struct{ content, want string }{
		{"", "byte 0"},
		{"null", "not a JSON object: byte 0"},
		{"[1]", "not a JSON object: byte 0"},
		{` "text"`, "not a JSON object: byte 1"},
		{`{"key":"secret","headers":{"a":"b"}`, "byte 35 of 35"},
		{`{"key":"secret"} x`, "byte 17"},
		{`{"key":"secret",}`, "byte 16"},
		{`{"key" "secret"}`, "byte 7"},
		{`{key:1}`, "byte 1"},
		{`{"payload":01}`, "byte 12"},
		{`{"payload":[1,]}`, "byte 14"},
		{`{"payload":{"a":1,}}`, "byte 18"},
		{`{"payload":{"a"}}`, "byte 15"},
		{`{"payload":"a` + "\n" + `"}`, "byte 13"},
		{`{"payload":"\x"}`, "byte 13"},
		{`{"payload":"\u00g0"}`, "byte 16"},
		{`{"payload":tru}`, "byte 14"},
		{`{"payload":.5}`, "byte 11"},
		{`{"payload":1.}`, "byte 13"},
		{`{"payload":1e}`, "byte 13"},
		{`{"payload":-}`, "byte 12"},
		{`{"payload":[` + deep + `]}`, fmt.Sprintf("byte %d", 11+maxDepth)},
		{"{\"payload\":\x00}", "byte 11"},
		{"{\x00}", "byte 1"},
	} {
		var ev event.Event
		o, _, err := newTestMapper(t, event.Forze).Message(logical("outbox", c.content), testTx(), &ev, nil)
		if o != Refused {
			t.Errorf("%.40q: %s", c.content, o)
			continue
		}
		expectError(t, err, event.Poison, AnchorPoisonMessage, c.want)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the content: %v", err)
		}
		if len(ev.Headers) != 0 {
			t.Error("headers of an unreadable message")
		}
		expectFields(t, &ev, map[string]string{"payload": c.content, "event_id": testID})
	}
}

func TestDeepPayloadsAreTakenUpToTheBound(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":[`, maxDepth/2) + strings.Repeat("]}", maxDepth/2)
	var ev event.Event
	o, _, err := newTestMapper(t, event.Forze).Message(logical("outbox", `{"payload":`+deep+`}`), testTx(), &ev, nil)
	if o != Publish || err != nil || string(ev.Fields[event.Payload]) != deep {
		t.Error(o, err)
	}
}

func TestMessageInAnotherStateThanPendingIsIgnored(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]Outcome{
		`{"status":"published"}`:                      IgnoredStatus,
		`{"status":"pending"}`:                        Publish,
		`{"published_at":"2023-11-14T22:13:20Z"}`:     IgnoredPublished,
		`{"available_at":"2023-11-14T22:13:20.123Z"}`: Publish,
	} {
		var ev event.Event
		if o, _, err := newTestMapper(t, event.Forze).Message(logical("outbox", content), testTx(), &ev, nil); o != want || err != nil {
			t.Errorf("%s: %s %v", content, o, err)
		}
	}
}

func TestMappingAMessageAllocatesNothingWithScratch(t *testing.T) {
	m := newTestMapper(t, event.Forze)
	var ev event.Event
	scratch := make([]byte, 0, 256)
	for _, msg := range []*LogicalMessage{
		logical("outbox", `{"route":"orders","key":"k\n1","payload":{"a":[1,2,{"b":null}]},"headers":{"a":"b"}}`),
		logical("outbox/orders/k", "payload"),
		logical("audit", "foreign"),
	} {
		if _, _, err := m.Message(msg, testTx(), &ev, scratch); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _, _, _ = m.Message(msg, testTx(), &ev, scratch) }); n > 0 {
			t.Errorf("%s: %v allocations", msg.Prefix, n)
		}
	}
}
