package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/relay"
)

// ledger is a database with an outbox, and its log.
type ledger interface {
	// open opens the log where the one before it had confirmed, the first time at the place
	// where init put it.
	open(t *testing.T) relay.Source
	// commit writes events in one transaction.
	commit(t *testing.T, events ...int)
	// rollBack writes them, and takes it back.
	rollBack(t *testing.T, events ...int)
	// vanish writes them, and deletes the rows before it commits.
	vanish(t *testing.T, events ...int)
	// elsewhere writes something that is no event.
	elsewhere(t *testing.T)
	// cut breaks the connection of whoever reads the log now.
	cut(t *testing.T)
}

var ledgers = []struct {
	name string
	make func(t *testing.T) ledger
}{
	{"slot", func(t *testing.T) ledger { return newSlotLedger(t) }},
	{"mongostream", func(t *testing.T) ledger { return newStreamLedger(t) }},
}

func everySource(t *testing.T, promise func(t *testing.T, l ledger)) {
	t.Parallel()
	for _, l := range ledgers {
		if broken && l.name != "mongostream" {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			promise(t, l.make(t))
		})
	}
}

// soon bounds what takes a moment, on a machine that runs other things too.
var soon = map[bool]time.Duration{false: 60 * time.Second, true: 5 * time.Second}[broken]

// reader reads a source as the relay does, and watches that it keeps the contract.
type reader struct {
	t      *testing.T
	s      relay.Source
	closed bool
	at     event.Position // the end of the last complete transaction that was read, or of the log
	part   []string       // events of the transaction that is not complete yet
	queue  []transaction  // read, and not asked for yet
	end    event.Position // of the last transaction that was asked for
}

// transaction is the events of one; none where the log only moved on.
type transaction struct {
	names []string
	end   event.Position
}

func read(t *testing.T, l ledger) *reader {
	t.Helper()
	r := &reader{t: t, s: l.open(t)}
	if f := faultOf(t); f.source != nil {
		r.s = f.source(r.s)
	}
	t.Cleanup(r.close)
	return r
}

func (r *reader) close() {
	if r.closed {
		return
	}
	r.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.s.Close(ctx); err != nil {
		r.t.Errorf("close: %v", err)
	}
}

// batch takes the next one, whose memory the caller owes.
func (r *reader) batch() (*event.Batch, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), soon)
	defer cancel()
	b, err := r.s.Next(ctx)
	if err != nil {
		return nil, err
	}
	rest := b.Events
	for _, span := range b.Spans {
		if span.Events > len(rest) {
			r.t.Fatalf("a span of %d events where %d are left", span.Events, len(rest))
		}
		for i := range rest[:span.Events] {
			ev := &rest[i]
			if int(ev.Ordinal) != len(r.part) {
				r.t.Errorf("event %s is number %d of its transaction, want %d", name(ev), ev.Ordinal, len(r.part))
			}
			if ev.Commit.IsZero() || ev.Commit.Compare(r.at) <= 0 || span.Done && ev.Commit.Compare(span.End) > 0 {
				r.t.Errorf("event %s is at %s, not between %s and %s", name(ev), ev.Commit, r.at, span.End)
			}
			r.part = append(r.part, name(ev))
		}
		rest = rest[span.Events:]
		if !span.Done {
			continue
		}
		if span.End.IsZero() || span.End.Compare(r.at) < 0 {
			r.t.Errorf("the position went from %s to %s", r.at, span.End)
		}
		r.queue = append(r.queue, transaction{r.part, span.End})
		r.at, r.part = span.End, nil
	}
	if len(rest) > 0 {
		r.t.Errorf("%d events are in no span", len(rest))
	}
	return b, nil
}

func name(ev *event.Event) string { return string(ev.Fields[event.EventID]) }

// until reads transactions until so many events came.
func (r *reader) until(n int) (names []string) {
	r.t.Helper()
	for len(names) < n {
		for len(r.queue) == 0 {
			b, err := r.batch()
			if err != nil {
				r.t.Fatalf("after %d of %d events: %v", len(names), n, err)
			}
			b.Memory.Release()
		}
		names, r.end = append(names, r.queue[0].names...), r.queue[0].end
		r.queue = r.queue[1:]
	}
	return names
}

// want reads just these events, in this order.
func (r *reader) want(events ...int) {
	r.t.Helper()
	wantNames(r.t, r.until(len(events)), events...)
}

func wantNames(t *testing.T, got []string, events ...int) {
	t.Helper()
	var want []string
	for _, n := range events {
		want = append(want, eventID(n))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("events %s\nwant   %s", short(got), short(want))
	}
}

func short(names []string) string {
	var b strings.Builder
	for _, name := range names[:min(len(names), 30)] {
		b.WriteString(strings.TrimLeft(name[max(0, len(name)-8):], "0") + " ")
	}
	return fmt.Sprintf("%s(%d)", b.String(), len(names))
}

func TestCommittedEventsComeWholeInTheOrderOfCommits(t *testing.T) {
	everySource(t, func(t *testing.T, l ledger) {
		l.commit(t, 1)
		l.commit(t, 5, 4, 3, 2)
		l.rollBack(t, 90, 91)
		l.elsewhere(t)
		r := read(t, l)
		r.want(1, 5, 4, 3, 2)
		l.commit(t, 6, 7)
		l.vanish(t, 8)
		l.rollBack(t, 92)
		l.commit(t, 9)
		r.want(6, 7, 8, 9)
	})
}

func TestConfirmedEventsDoNotComeAgainAndTheOthersDo(t *testing.T) {
	everySource(t, func(t *testing.T, l ledger) {
		for _, n := range []int{1, 3, 5, 7} {
			l.commit(t, n, n+1)
		}
		first := read(t, l)
		first.want(1, 2)
		first.s.Confirm(first.end)
		first.want(3, 4)
		confirmed := first.end
		first.s.Confirm(confirmed)
		first.want(5, 6, 7, 8)
		first.close()

		second := read(t, l)
		second.want(5, 6, 7, 8)
		if second.end.Compare(confirmed) <= 0 {
			t.Fatalf("the second reader is at %s, and %s was confirmed", second.end, confirmed)
		}
		second.close() // nothing confirmed

		third := read(t, l)
		third.want(5, 6, 7, 8)
		third.s.Confirm(third.end)
		third.close()
		l.commit(t, 9)
		read(t, l).want(9)
	})
}

func TestFinishEndsAtATransactionsEnd(t *testing.T) {
	everySource(t, func(t *testing.T, l ledger) {
		r := read(t, l)
		l.commit(t, span(1, 3000)...)
		l.commit(t, span(3001, 6000)...)
		var got []string
		for {
			b, err := r.batch()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Events {
				got = append(got, name(&b.Events[i]))
			}
			b.Memory.Release()
			if len(got) > 0 {
				r.s.Finish()
			}
		}
		if len(r.part) > 0 || len(got)%3000 != 0 || len(got) == 0 {
			t.Fatalf("the end came after %d events, %d of a transaction", len(got), len(r.part))
		}
		wantNames(t, got, span(1, len(got))...)
		if _, err := r.batch(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the end: %v", err)
		}
		r.s.Confirm(r.at)
		r.close()
		if len(got) < 6000 {
			read(t, l).want(span(len(got)+1, 6000)...)
		}
	})
}

func TestFinishOfAnIdleSourceEndsIt(t *testing.T) {
	everySource(t, func(t *testing.T, l ledger) {
		l.commit(t, 1)
		r := read(t, l)
		r.want(1)
		r.s.Finish()
		for deadline := time.Now().Add(soon); ; {
			b, err := r.batch()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && time.Now().After(deadline) {
				t.Fatal("it goes on")
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Events) > 0 {
				t.Fatalf("event %s", name(&b.Events[0]))
			}
			b.Memory.Release()
		}
	})
}

// The events go with the next call, their bytes stay until the memory is released.
func TestBytesStayUntilTheirMemoryIsReleased(t *testing.T) {
	everySource(t, func(t *testing.T, l ledger) {
		r := read(t, l)
		type kept struct{ bytes, copied []byte }
		var (
			all  []kept
			owed []*event.Memory
		)
		for round := range 8 {
			l.commit(t, span(round*100+1, round*100+100)...)
			for n := 0; n < 100; {
				b, err := r.batch()
				if err != nil {
					t.Fatal(err)
				}
				n += len(b.Events)
				if round%2 == 1 { // who releases a batch, and goes on, does not harm those that are kept
					b.Memory.Release()
					continue
				}
				for i := range b.Events {
					for _, f := range b.Events[i].Fields {
						all = append(all, kept{f, slices.Clone(f)})
					}
				}
				owed = append(owed, b.Memory)
			}
		}
		for i, k := range all {
			if string(k.bytes) != string(k.copied) {
				t.Fatalf("field %d changed from %q to %q", i, k.copied, k.bytes)
			}
		}
		for _, m := range owed {
			m.Release()
		}
	})
}

// Other writers' log must not pile up behind an idle outbox.
func TestPositionOfAnIdleOutboxMovesOn(t *testing.T) {
	everySource(t, func(t *testing.T, l ledger) {
		l.commit(t, 1)
		r := read(t, l)
		r.want(1)
		at := r.at
		deadline := time.Now().Add(soon)
		for r.at.Compare(at) <= 0 {
			if time.Now().After(deadline) {
				t.Fatalf("the position is still %s", at)
			}
			l.elsewhere(t)
			b, err := r.batch()
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Events) > 0 {
				t.Fatalf("event %s", name(&b.Events[0]))
			}
			b.Memory.Release()
		}
		r.s.Confirm(r.at)
		r.close()
		l.commit(t, 2)
		read(t, l).want(2)
	})
}

func TestNextKeepsToItsContextAndGoesOnAfterwards(t *testing.T) {
	everySource(t, func(t *testing.T, l ledger) {
		l.commit(t, 1)
		r := read(t, l)
		r.want(1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 { // what was there already may come first
			b, err := r.s.Next(ctx)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				l.commit(t, 2, 3)
				r.want(2, 3)
				return
			}
			if len(b.Events) > 0 {
				t.Fatalf("event %s", name(&b.Events[0]))
			}
			b.Memory.Release()
		}
		t.Fatal("Next does not mind its context")
	})
}
