package slot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

func usable(t *testing.T) Options {
	t.Helper()
	schema, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Source: "orders", DSN: "postgres://relay:Tr0ub4dor@127.0.0.1:5432/shop", Schema: schema, Bookkeeping: "walrelay",
		Tables: []Table{{"public", "outbox"}}, Messages: []string{"outbox"},
	}.WithDefaults()
}

func TestDefaultsFillNamesThatPostgresAccepts(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"orders", "Orders-EU.1", "größe", strings.Repeat("long", 40)} {
		o := Options{
			Source: source, DSN: "host=127.0.0.1", Messages: []string{"outbox"},
		}.WithDefaults()
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", source, err)
		}
		if len(o.ApplicationName) > 63 || !strings.HasPrefix(o.ApplicationName, "walrelay/") {
			t.Errorf("%s: application name %q", source, o.ApplicationName)
		}
	}
}

func TestEachWrongOptionIsRefusedWithItsName(t *testing.T) {
	t.Parallel()
	cases := []struct {
		want   string
		change func(*Options)
	}{
		{"no name", func(o *Options) { o.Source = "" }},
		{"connection string is empty", func(o *Options) { o.DSN = "" }},
		{"a-z, digits and _", func(o *Options) { o.Slot = "MySlot" }},
		{"a-z, digits and _", func(o *Options) { o.Slot = "my-slot" }},
		{"a-z, digits and _", func(o *Options) { o.Slot = strings.Repeat("s", 64) }},
		{"has 64 bytes", func(o *Options) { o.Publication = strings.Repeat("p", 64) }},
		{"neither a table nor a message", func(o *Options) { o.Tables, o.Messages = nil, nil }},
		{"listed twice", func(o *Options) { o.Tables = append(o.Tables, o.Tables[0]) }},
		{"is empty", func(o *Options) { o.Tables = []Table{{"", "outbox"}} }},
		{"no schema says", func(o *Options) { o.Schema = event.Schema{} }},
		{"listed twice", func(o *Options) { o.ExtraColumns = []string{"a", "a"} }},
		{"is empty", func(o *Options) { o.ExtraColumns = []string{""} }},
		{"listed twice", func(o *Options) { o.Messages = []string{"a", "a"} }},
		{"without NUL", func(o *Options) { o.Messages = []string{"a\x00"} }},
		{"longer than the longest", func(o *Options) { o.ReconnectMin = o.ReconnectMax + 1 }},
		{"negative", func(o *Options) { o.WireTimeout = -1 }},
		{"negative", func(o *Options) { o.InFlightBytes = -1 }},
		{"cannot be read", func(o *Options) { o.DSN = "postgres://u:p@h:port/db" }},
	}
	for _, c := range cases {
		o := usable(t)
		c.change(&o)
		err := o.Validate()
		var e *event.Error
		if !errors.As(err, &e) || e.Fault != event.FaultUsage || e.Remedy == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}

func TestOptionsNeverPrintTheConnectionString(t *testing.T) {
	t.Parallel()
	o := usable(t)
	for _, format := range []string{"%v", "%+v", "%s", "%#v"} {
		for _, v := range []any{o, &o} {
			if text := fmt.Sprintf(format, v); strings.Contains(text, "Tr0ub4dor") {
				t.Errorf("%s prints the password: %s", format, text)
			}
		}
	}
}
