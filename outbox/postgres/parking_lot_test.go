package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/slot"
	"github.com/walrelay/walrelay/test/pgserver"
)

// lot is a house with a parking store.
type lot struct {
	*house
	k *Parking
}

func newLot(t *testing.T, srv *pgserver.Server, preset event.Preset, ddl string, change func(o *Options)) *lot {
	t.Helper()
	h := newHouse(t, srv, preset, ddl, change)
	so := slot.Options{
		Source: "orders", DSN: srv.URL(h.name), Schema: h.db.o.Schema, Bookkeeping: "walrelay", Capture: slot.CapturePoll,
		WriteBack: slot.MarkRows, Tables: []slot.Table{{Schema: "public", Name: "outbox"}},
	}.WithDefaults()
	if _, err := slot.Apply(h.ctx(), h.conn, so); err != nil {
		t.Fatal(err)
	}
	return &lot{h, h.db.Parking()}
}

// parked is event n of a key, as the log would bring it.
func parked(n int, key string) outbox.Parked {
	return outbox.Parked{
		Relation: "public.outbox", Row: id(n), EventID: "e" + fmt.Sprint(n), Route: "r", Key: key, Topic: "shop.orders",
		Commit: event.AtLSN(event.LSN(1000 + n)), Ordinal: uint32(n), Reason: "too_large", Error: "it has 2 bytes, the limit is 1",
		Record: &event.Record{Topic: "shop.orders", Key: []byte(key), Value: fmt.Appendf(nil, `{"n": %d}`, n)},
	}
}

// message is the same without a row.
func message(n int, key string) outbox.Parked {
	p := parked(n, key)
	p.Relation, p.Row = "outbox", ""
	return p
}

func (l *lot) park(list ...outbox.Parked) {
	l.t.Helper()
	for _, p := range list {
		if err := l.k.Park(l.ctx(), p); err != nil {
			l.t.Fatal(err)
		}
	}
}

func (l *lot) leave(list ...outbox.Parked) {
	l.t.Helper()
	for _, p := range list {
		if err := l.k.LeaveBehind(l.ctx(), p); err != nil {
			l.t.Fatal(err)
		}
	}
}

// entries are the store's, in words: id state key row/whole.
func (l *lot) entries() string {
	l.t.Helper()
	list, err := l.k.List(l.ctx(), outbox.ParkedFilter{Limit: 1000})
	if err != nil {
		l.t.Fatal(err)
	}
	var words []string
	for _, p := range list {
		kind := "row"
		if p.Whole {
			kind = "whole"
		}
		words = append(words, fmt.Sprintf("%s:%s:%s:%s", p.EventID, p.Key, p.State, kind))
	}
	return strings.Join(words, " ")
}

func (l *lot) wantEntries(want string) {
	l.t.Helper()
	if got := l.entries(); got != want {
		l.t.Fatalf("entries: %s\nwant:    %s", got, want)
	}
}

// whole are the event ids of Whole, and the ids of the entries.
func (l *lot) whole() (names string, ids []int64) {
	l.t.Helper()
	list, err := l.k.Whole(l.ctx(), 1000)
	if err != nil {
		l.t.Fatal(err)
	}
	var words []string
	for _, p := range list {
		words, ids = append(words, p.EventID), append(ids, p.ID)
	}
	return strings.Join(words, " "), ids
}

// find is the id of an event's entry.
func (l *lot) find(eventID string) int64 {
	l.t.Helper()
	list, err := l.k.List(l.ctx(), outbox.ParkedFilter{EventID: eventID})
	if err != nil || len(list) != 1 {
		l.t.Fatalf("entries of %s: %v, %v", eventID, list, err)
	}
	return list[0].ID
}

func (l *lot) retry(want int, events ...string) {
	l.t.Helper()
	l.operate("retried", l.k.Retry, want, events)
}

// operate runs an operator's command on the entries of some events.
func (l *lot) operate(what string, f func(ctx context.Context, ids []int64) (int, error), want int, events []string) {
	l.t.Helper()
	var ids []int64
	for _, e := range events {
		ids = append(ids, l.find(e))
	}
	if n, err := f(l.ctx(), ids); err != nil || n != want {
		l.t.Fatalf("%s %v: %d changed, want %d: %v", what, events, n, want, err)
	}
}
