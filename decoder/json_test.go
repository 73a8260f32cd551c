package decoder

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/walrelay/walrelay/event"
)

// FuzzJSON: the scanner accepts exactly what encoding/json accepts, and finds the
// same bytes and strings.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1}`, ` [1 , -0.5e+3, "x\u0041\n", null , true,false] `, `{"a":{"b":[{},[],{"c":"\ud83d\ude00"}]}}`,
		`01`, `"\ud800"`, `1e400`, `{"a":1,}`, `[1 2]`, "\"\x00\"", "\"\xff\"", `"unterminated`, `nul`, `--1`, `{"a"}`, ``, ` `, `1 x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s scanner
		s.reset(data)
		span, ok := s.value()
		ok = ok && s.atEnd()
		if valid := json.Valid(data); ok != valid {
			t.Fatalf("%q: accepted %t, encoding/json says %t, at %d", data, ok, valid, s.off)
		}
		if !ok {
			return
		}
		if want := bytes.Trim(data, " \t\r\n"); !bytes.Equal(span, want) {
			t.Fatalf("span %q, want %q", span, want)
		}
		if span[0] != '"' {
			return
		}
		text, _, problem := decodeString(span[1:len(span)-1], nil)
		var want string
		if err := json.Unmarshal(span, &want); err != nil {
			t.Fatal(err)
		}
		// encoding/json replaces what is a problem here by U+FFFD.
		lossy := !utf8.Valid(span) || strings.ContainsRune(want, 0) ||
			strings.Count(want, "\uFFFD") > strings.Count(strings.ToLower(string(span)), `\ufffd`)+bytes.Count(span, []byte("\uFFFD"))
		if lossy != (problem != "") || !lossy && string(text) != want {
			t.Fatalf("%q: got %q (%s), want %q", span, text, problem, want)
		}
	})
}

// FuzzMessage: no content makes the mapper panic or lose an event, and a payload
// is always a piece of the content.
func FuzzMessage(f *testing.F) {
	f.Add("outbox", `{"route":"orders","key":"k","payload":{"a":1},"headers":{"a":"b"}}`)
	f.Add("outbox/orders/k", "\x00")
	f.Add("outbox", `{"event_id":null,"status":"x","available_at":"infinity"}`)
	f.Add("outbox", `{"headers":{"a":1,"b":"\u0000"},"x":[`)
	f.Fuzz(func(t *testing.T, prefix, content string) {
		m := newTestMapper(t, event.Forze)
		var ev event.Event
		o, _, err := m.Message(logical(prefix, content), testTx(), &ev, nil)
		if (err != nil) != (o == Refused) || err != nil && event.ClassOf(err) != event.Poison {
			t.Fatal(o, err)
		}
		if o.Ignored() {
			return
		}
		if len(ev.Fields[event.EventID]) == 0 || !strings.Contains(content, string(ev.Fields[event.Payload])) {
			t.Fatalf("%q", fieldsOf(&ev))
		}
	})
}
