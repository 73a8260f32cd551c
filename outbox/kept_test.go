package outbox

import (
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/walrelay/walrelay/event"
)

func TestKeptTextComesBackByteForByte(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a", "ключ", "\x00", "a\xff", `\x41`, `\x`, `\xzz`, "\uFFFD", `\X41`} {
		plain := PlainText(s)
		if !utf8.ValidString(plain) || FromPlainText(plain) != s {
			t.Errorf("%q became %q and then %q", s, plain, FromPlainText(plain))
		}
	}
	if got := Printable("a\x00b\xffc"); got != "a\\0b\uFFFDc" {
		t.Errorf("%q", got)
	}
}

func TestKeptRecordComesBackWithAllButItsBytes(t *testing.T) {
	t.Parallel()
	rec := &event.Record{
		Topic: "t\x00", Headers: []event.Header{{Key: "a\xff", Value: []byte{0, 255}}, {Key: "nil"}, {Key: "empty", Value: []byte{}}},
		Millis: -1, FallbackMillis: 1 << 50, Hash: 7, Spread: true, Loose: true, Partial: true,
	}
	text, err := EncodeRecord(rec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeRecord([]byte(text))
	if err != nil || !reflect.DeepEqual(got, rec) {
		t.Errorf("%+v, want %+v: %v", got, rec, err)
	}
	if _, err := DecodeRecord([]byte(text[1:])); err == nil {
		t.Error("a torn text was taken")
	}
}
