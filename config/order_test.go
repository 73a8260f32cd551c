package config

import (
	"strings"
	"testing"
	"time"
)

func TestOrderThatCannotBeKeptIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ routes, path, what string }{
		{"a: {topic: t, order: hlc}\n  b: {topic: t}", "routes.b.order", "one topic has one order"},
		{"a: {topic: t, order: hlc}\n  b: {topic: t, order: hlc, within_key: commit}", "routes.b.order", "one topic has one order"},
		{"a: {topic: t, within_key: commit}", "routes.a.within_key", "no effect"},
		{"a: {topic: t, order: hlc, partition: spread}", "routes.a.order", "gives up every order"},
	} {
		found := problemsOf(t, world{}, minimal+"routes:\n  "+c.routes+"\n")
		if len(found) != 1 || found[0].Path != c.path || !strings.Contains(found[0].What, c.what) {
			t.Errorf("%s: %v", c.routes, found)
		}
	}
}

func TestNobodyIsPutInOrderWhoDidNotAsk(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, world{}, minimal)
	o, err := c.SlotOptions("orders")
	if c.OrderOptions() != nil || err != nil || o.Ordered {
		t.Errorf("%+v, %v %+v", c.OrderOptions(), err, o)
	}
	c = mustLoad(t, world{}, minimal+"routes: {a: {order: hlc}}\n")
	if got := c.OrderOptions(); got == nil || got.StallAfter != 30*time.Second || got.Transaction != 10*time.Second || got.HaltOnLate {
		t.Errorf("%+v", got)
	}
}

func TestSourceThatCannotBeWaitedForIsWarnedOf(t *testing.T) {
	t.Parallel()
	const polled = minimal + "routes: {a: {order: hlc}}\n"
	for text, want := range map[string]string{
		strings.Replace(polled, "postgres:", "schema: debezium\n    postgres:", 1): "names no column for stamps",
		strings.Replace(polled, "tables:", "capture: poll\n      tables:", 1):      "does not say what is still to come",
	} {
		_, warnings, err := world{}.load(text)
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0].What, want) {
			t.Errorf("%s: %v %v", text, err, warnings)
		}
	}
}
