package conformance

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// parked is event n of a key, as the log would bring it.
func (y *yard) parked(n int, key string) outbox.Parked {
	return outbox.Parked{
		Relation: y.relation(), Row: y.id(n), EventID: fmt.Sprint("e", n), Route: "r", Key: key, Topic: "shop.orders",
		Commit: y.at(1000 + n), Ordinal: uint32(n), Reason: "too_large", Error: "it has 2 bytes, the limit is 1",
		Record: &event.Record{Topic: "shop.orders", Key: []byte(key), Value: fmt.Appendf(nil, `{"n": %d}`, n)},
	}
}

// message is the same without a row.
func (y *yard) message(n int, key string) outbox.Parked {
	p := y.parked(n, key)
	p.Relation, p.Row = "outbox", ""
	return p
}

// asRead is the event as the table reader has it: without a position.
func asRead(p outbox.Parked) outbox.Parked {
	p.Commit, p.Ordinal, p.Record = event.Position{}, 0, nil
	return p
}

func (y *yard) park(list ...outbox.Parked) {
	y.t.Helper()
	for _, p := range list {
		if err := y.k.Park(y.ctx(), p); err != nil {
			y.t.Fatal(err)
		}
	}
}

func (y *yard) leave(list ...outbox.Parked) {
	y.t.Helper()
	for _, p := range list {
		if err := y.k.LeaveBehind(y.ctx(), p); err != nil {
			y.t.Fatal(err)
		}
	}
}

// entries are the store's, in words: event:key:state:row or whole.
func (y *yard) entries() string {
	y.t.Helper()
	list, err := y.k.List(y.ctx(), outbox.ParkedFilter{Limit: 1000})
	if err != nil {
		y.t.Fatal(err)
	}
	var words []string
	for i, p := range list {
		if i > 0 && p.ID <= list[i-1].ID || p.Record != nil {
			y.t.Fatalf("entries are listed in a wrong order, or with their events: %+v", list)
		}
		kind := "row"
		if p.Whole {
			kind = "whole"
		}
		words = append(words, fmt.Sprintf("%s:%s:%s:%s", p.EventID, p.Key, p.State, kind))
	}
	return strings.Join(words, " ")
}

func (y *yard) wantEntries(want string) {
	y.t.Helper()
	if got := y.entries(); got != want {
		y.t.Fatalf("entries: %s\nwant:    %s", got, want)
	}
}

func (y *yard) wantHeld(want ...outbox.HeldKey) {
	y.t.Helper()
	got, err := y.k.Held(y.ctx())
	if err != nil {
		y.t.Fatal(err)
	}
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		y.t.Fatalf("held %+v, want %+v", got, want)
	}
}

// wantWhole compares the events that may go, and gives the ids of their entries.
func (y *yard) wantWhole(want string) (ids []int64) {
	y.t.Helper()
	list, err := y.k.Whole(y.ctx(), 1000)
	if err != nil {
		y.t.Fatal(err)
	}
	var words []string
	for _, p := range list {
		if p.Record == nil {
			y.t.Fatalf("event %s came without its record", p.EventID)
		}
		words, ids = append(words, p.EventID), append(ids, p.ID)
	}
	if got := strings.Join(words, " "); got != want {
		y.t.Fatalf("may go: %s, want %s", got, want)
	}
	return ids
}

// find is the id of an event's entry.
func (y *yard) find(eventID string) int64 {
	y.t.Helper()
	list, err := y.k.List(y.ctx(), outbox.ParkedFilter{EventID: eventID})
	if err != nil || len(list) != 1 {
		y.t.Fatalf("entries of %q: %v, %v", eventID, list, err)
	}
	return list[0].ID
}

func (y *yard) retry(want int, events ...string) {
	y.t.Helper()
	y.operate("retried", y.k.Retry, want, events)
}

func (y *yard) drop(want int, events ...string) {
	y.t.Helper()
	y.operate("dropped", y.k.Drop, want, events)
}

// operate runs an operator's command on the entries of some events.
func (y *yard) operate(what string, f func(ctx context.Context, ids []int64) (int, error), want int, events []string) {
	y.t.Helper()
	var ids []int64
	for _, e := range events {
		ids = append(ids, y.find(e))
	}
	if n, err := f(y.ctx(), ids); err != nil || n != want {
		y.t.Fatalf("%s %v: %d changed, want %d: %v", what, events, n, want, err)
	}
}
