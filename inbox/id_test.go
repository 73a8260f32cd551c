package inbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/inbox"
)

func newInbox(t *testing.T, opts inbox.Options) *inbox.Inbox {
	t.Helper()
	if opts.Route == "" {
		opts.Route = "payments"
	}
	in, err := inbox.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Battery F5 of the forze contract.
func TestIDIsTheExtractorsThenTheHeadersThenThePlaceAndNeverTheKey(t *testing.T) {
	t.Parallel()
	fromKey := func(r *inbox.Record) string { return strings.TrimPrefix(string(r.Key), "id-") }
	for _, c := range []struct {
		name string
		opts inbox.Options
		r    inbox.Record
		want string
		err  error
	}{
		{"header beats place", inbox.Options{}, kafka(7, "k", "forze_event_id", someID), someID, nil},
		{"extractor beats header", inbox.Options{ID: fromKey}, kafka(7, "id-9", "forze_event_id", someID), "9", nil},
		{"an extractor that finds nothing leaves it to the header", inbox.Options{ID: fromKey}, kafka(7, "", "forze_event_id", someID), someID, nil},
		{"an empty header falls back", inbox.Options{}, kafka(7, "k", "forze_event_id", ""), "orders:2:7", nil},
		{"no header", inbox.Options{}, kafka(7, "k"), "orders:2:7", nil},
		{"the last header of a name counts", inbox.Options{}, kafka(7, "k", "forze_event_id", otherID, "forze_event_id", someID), someID, nil},
		{"the header of other presets is not asked", inbox.Options{}, kafka(7, "k", "id", someID), "orders:2:7", nil},
		{"the header of other presets, when told", inbox.Options{EventIDHeader: inbox.HeaderID}, kafka(7, "k", "id", someID), someID, nil},
		{"a key alone is nothing", inbox.Options{}, inbox.Record{Key: []byte(someID)}, "", inbox.ErrNoID},
		{"a place without offset is none", inbox.Options{}, inbox.Record{Topic: "t", Offset: -1, Key: []byte("k")}, "", inbox.ErrNoID},
		{"too long", inbox.Options{}, kafka(7, "k", "forze_event_id", strings.Repeat("x", inbox.MaxID+1)), "", inbox.ErrBadID},
		{"the longest", inbox.Options{}, kafka(7, "k", "forze_event_id", strings.Repeat("x", inbox.MaxID)), strings.Repeat("x", inbox.MaxID), nil},
		{"not text", inbox.Options{}, kafka(7, "k", "forze_event_id", "\xff"), "", inbox.ErrBadID},
		{"a zero byte", inbox.Options{}, kafka(7, "k", "forze_event_id", "a\x00b"), "", inbox.ErrBadID},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := newInbox(t, c.opts).MessageID(&c.r)
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("id %q and %v, want %q and %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestRecordWithoutAnIDNeverReachesTheHandler(t *testing.T) {
	t.Parallel()
	m := &memory{marks: map[string]bool{}}
	outcome, err := m.deliver(t.Context(), newInbox(t, inbox.Options{}), inbox.Record{Key: []byte("k")}, func(context.Context, inbox.Message) error {
		t.Error("the handler ran")
		return nil
	})
	if outcome != inbox.Unsettled || !errors.Is(err, inbox.ErrNoID) || len(m.marks) != 0 {
		t.Errorf("%s, %v, marks %v", outcome, err, m.marks)
	}
}

func TestInboxWithoutARouteIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := inbox.New(inbox.Options{}); err == nil {
		t.Error("it is made")
	}
}
