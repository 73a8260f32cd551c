package router

import (
	"testing"

	"github.com/walrelay/walrelay/event"
)

func TestPositionNamesSourceCommitAndOrdinal(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "a:b", Schema: schema(t, event.Forze), Position: true})
	for want, at := range map[string]event.Position{
		"a:b:16/B374D848:3": event.AtLSN(0x16B374D848),
		"a:b:8265AB:3":      event.AtToken("8265AB"),
	} {
		ev := bareEvent()
		ev.Commit = at
		rec, err := route(r, &ev)
		if got := headerText(&rec, headerPosition); err != nil || got != want {
			t.Errorf("got %q, error %v, want %q", got, err, want)
		}
	}
}

func TestOnlyWhatStandsOutsideOfTransactionsIsMarkedSo(t *testing.T) {
	t.Parallel()
	r := mustNew(t, Options{Source: "src", Schema: schema(t, event.Forze)})
	for stray, want := range map[bool]string{true: "false", false: "(absent)"} {
		ev := bareEvent()
		ev.NonTransactional = stray
		ev.Headers = []event.Header{{Key: headerTransactional, Value: []byte("forged")}}
		rec, err := route(r, &ev)
		if got := headerText(&rec, headerTransactional); err != nil || got != want {
			t.Errorf("outside of any transaction %v: header %q, error %v, want %q", stray, got, err, want)
		}
	}
}
