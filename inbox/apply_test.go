package inbox_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/inbox"
)

func stamp(t *testing.T, text string) hlc.Stamp {
	t.Helper()
	s, err := hlc.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const someStamp = "001700000000000.00003"

func nothing(context.Context, inbox.Message) error { return nil }

// Batteries F1 and F2 of the forze contract.
func TestDuplicateRunsNoHandlerAndMovesNoClock(t *testing.T) {
	t.Parallel()
	c := &clock{}
	in := newInbox(t, inbox.Options{Clock: c})
	m := &memory{marks: map[string]bool{}}
	runs := 0
	count := func(context.Context, inbox.Message) error { runs++; return nil }
	for i, want := range []inbox.Outcome{inbox.Handled, inbox.Duplicate, inbox.Duplicate} {
		// The relay published it three times: the offset differs, the event does not.
		outcome, err := m.deliver(t.Context(), in, kafka(int64(i), "k", "forze_event_id", someID, "forze_hlc", someStamp), count)
		if outcome != want || err != nil {
			t.Errorf("delivery %d: %s, %v", i, outcome, err)
		}
	}
	if runs != 1 || len(c.seen) != 1 || c.seen[0] != stamp(t, someStamp) {
		t.Errorf("%d runs, the clock saw %v", runs, c.seen)
	}
	if s := in.Stats(); s != (inbox.Stats{Handled: 1, Duplicates: 2, StampsMerged: 1}) {
		t.Errorf("stats %+v", s)
	}
}

// Batteries F3 and F4 of the forze contract.
func TestRecordsWithoutAnEventIDAreToldApartByPlaceAndNotByKey(t *testing.T) {
	t.Parallel()
	in := newInbox(t, inbox.Options{})
	m := &memory{marks: map[string]bool{}}
	var got []inbox.Outcome
	for _, offset := range []int64{1, 2, 1} {
		outcome, err := m.deliver(t.Context(), in, kafka(offset, "same"), nothing)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, outcome)
	}
	if want := []inbox.Outcome{inbox.Handled, inbox.Handled, inbox.Duplicate}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestStampIsMergedAfterTheMarkAndBeforeTheHandler(t *testing.T) {
	t.Parallel()
	c := &clock{}
	in := newInbox(t, inbox.Options{Clock: c})
	m := &memory{marks: map[string]bool{}, fail: errors.New("no database")}
	r := kafka(1, "k", "forze_event_id", someID, "forze_hlc", someStamp)
	if outcome, err := m.deliver(t.Context(), in, r, nothing); outcome != inbox.Unsettled || !errors.Is(err, m.fail) {
		t.Errorf("%s, %v", outcome, err)
	}
	if len(c.seen) != 0 {
		t.Error("the clock moved before the mark")
	}
	m.fail = nil
	if _, err := m.deliver(t.Context(), in, r, func(context.Context, inbox.Message) error {
		if len(c.seen) != 1 {
			t.Error("the handler runs before the clock has moved")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestRefusedStampIsCountedAndTheEventHandled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, header string
		want         inbox.Stats
		err          error
	}{
		{"malformed", "soon", inbox.Stats{Handled: 1, StampsMalformed: 1}, inbox.ErrMalformedStamp},
		{"empty", "", inbox.Stats{Handled: 1, StampsMalformed: 1}, inbox.ErrMalformedStamp},
		{"negative", "-1.00000", inbox.Stats{Handled: 1, StampsMalformed: 1}, inbox.ErrMalformedStamp},
		{"logical part too large", "1.65536", inbox.Stats{Handled: 1, StampsMalformed: 1}, inbox.ErrMalformedStamp},
		{"far ahead", "009999999999999.00000", inbox.Stats{Handled: 1, StampsRefused: 1}, errAhead},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cl := &clock{limit: stamp(t, someStamp)}
			var told []error
			in := newInbox(t, inbox.Options{Clock: cl, OnRefused: func(m inbox.Message, err error) {
				if m.ID != someID {
					t.Errorf("refused in message %s", m.ID)
				}
				told = append(told, err)
			}})
			m := &memory{marks: map[string]bool{}}
			outcome, err := m.deliver(t.Context(), in, kafka(1, "k", "forze_event_id", someID, "forze_hlc", c.header), nothing)
			if outcome != inbox.Handled || err != nil {
				t.Errorf("%s, %v", outcome, err)
			}
			if in.Stats() != c.want || len(cl.seen) != 0 || len(told) != 1 || !errors.Is(told[0], c.err) {
				t.Errorf("stats %+v, want %+v; clock %v; told %v", in.Stats(), c.want, cl.seen, told)
			}
		})
	}
}

func TestStampOfATransactionThatIsRunAgainIsMergedOnce(t *testing.T) {
	t.Parallel()
	c := &clock{}
	in := newInbox(t, inbox.Options{Clock: c})
	ctx, msg, err := in.Receive(t.Context(), kafka(1, "k", "forze_event_id", someID, "forze_hlc", someStamp))
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{marks: map[string]bool{}}
	for range 3 {
		if _, err := inbox.Apply(ctx, in, m, m.begin(), msg, func(context.Context, *memoryTx, inbox.Message) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.seen) != 1 {
		t.Errorf("the clock saw %v", c.seen)
	}
}

func TestFailedHandlerLeavesNothingToCommit(t *testing.T) {
	t.Parallel()
	in := newInbox(t, inbox.Options{})
	m := &memory{marks: map[string]bool{}}
	fault := errors.New("no money")
	r := kafka(1, "k", "forze_event_id", someID)
	// deliver commits whatever happens, as a careless caller would.
	if outcome, err := m.deliver(t.Context(), in, r, func(context.Context, inbox.Message) error { return fault }); outcome != inbox.Unsettled || err != fault {
		t.Errorf("%s, %v", outcome, err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		tx := m.begin()
		defer func() { m.commit(tx) }()
		ctx, msg, _ := in.Receive(t.Context(), r)
		_, _ = inbox.Apply(ctx, in, m, tx, msg, func(context.Context, *memoryTx, inbox.Message) error { panic("no memory") })
	}()
	if len(m.marks) != 0 {
		t.Errorf("marks %v", m.marks)
	}
	if outcome, err := m.deliver(t.Context(), in, r, nothing); outcome != inbox.Handled || err != nil {
		t.Errorf("delivered again: %s, %v", outcome, err)
	}
	if s := in.Stats(); s.Failed != 2 || s.Handled != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestReactionSortsAfterItsCauseUnlessTheStampIsForged(t *testing.T) {
	t.Parallel()
	wall := time.UnixMilli(1_700_000_000_000)
	c := hlc.New(func() time.Time { return wall }, hlc.DefaultMaxDrift)
	in := newInbox(t, inbox.Options{Clock: c})
	m := &memory{marks: map[string]bool{}}
	for i, ahead := range []time.Duration{-time.Hour, 0, 2 * time.Second, hlc.DefaultMaxDrift} {
		cause, err := hlc.Pack(wall.Add(ahead).UnixMilli(), 7)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.deliver(t.Context(), in, kafka(int64(i), "k", "forze_hlc", cause.String()), func(context.Context, inbox.Message) error {
			if effect := c.Now(); effect <= cause {
				t.Errorf("effect %s of cause %s", effect, cause)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	before := c.Last()
	forged, err := hlc.Pack(wall.Add(hlc.DefaultMaxDrift+24*time.Hour).UnixMilli(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{forged.String(), hlc.Stamp(1<<63 - 1).String(), "999999999999999.00000"} {
		if outcome, err := m.deliver(t.Context(), in, kafka(100+int64(i), "k", "forze_hlc", text), nothing); outcome != inbox.Handled || err != nil {
			t.Errorf("%s, %v", outcome, err)
		}
	}
	if c.Last() != before {
		t.Errorf("the clock went from %s to %s", before, c.Last())
	}
	if s := in.Stats(); s.StampsMerged != 4 || s.StampsRefused != 2 || s.StampsMalformed != 1 {
		t.Errorf("stats %+v", s)
	}
}
