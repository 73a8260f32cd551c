package mongo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestClaimTakesRowsInTableOrderAndWritesOnlyTheClaim(t *testing.T) {
	t.Parallel()
	for _, missing := range []MissingHLC{HLCFirst, HLCLast} {
		h := newHouse(t, mongoserver.Shared(t), event.Forze, func(o *Options) { o.MissingHLC = missing })
		h.insert(1, 10, 10)
		h.set(bson.D{is("available_at", time.Now().Add(-time.Minute)), is("attempts", 2), is("last_error", "x")}, 4)
		h.set(bson.D{is("available_at", time.Now().Add(time.Hour))}, 2)
		h.set(bson.D{is("available_at", "no date, which is for the reader to refuse")}, 9)
		h.set(bson.D{is("hlc", nil)}, 1)
		h.set(bson.D{is("status", failed)}, 3)
		order := []string{id(1), id(4), id(5), id(6), id(7), id(8), id(9), id(10)}
		if missing == HLCLast {
			order = append(order[1:], id(1))
		}
		c := h.claim(outbox.Request{Limit: 4})
		same(t, "first claim", rowIDs(c), order[:4])
		row := &c.Rows[slices.Index(order, id(4))]
		if row.Attempts != 2 || row.Route != "route1" || row.Key != "k4" || string(row.Event.Fields[event.Payload]) != `{"a":1}` ||
			row.Event.CommitMicros != began.Add(4*time.Millisecond).UnixMicro() || row.Event.Relation != h.name+".outbox" || row.Event.Fields[event.Status] != nil {
			t.Fatalf("row %+v", row)
		}
		doc := h.doc(5)
		token := doc.Lookup("claim_token").StringValue()
		moment, _, _ := strings.Cut(string(c.Fence), " ")
		if at, _, err := parseMoment(moment); err != nil || tokenOf(c.Fence) != token || at.After(doc.Lookup("processing_at").Time()) || time.Since(at) > time.Minute {
			t.Fatalf("fence %s, token %s, %v", c.Fence, token, err)
		}
		h.wantRow(4, "processing attempts=2 processing_at due error=x")
		h.wantRow(5, "processing attempts=0 processing_at")
		h.wantRow(2, "pending attempts=0 later")
		same(t, "second claim", rowIDs(h.claim(outbox.Request{Limit: 10})), order[4:])
		if c := h.claim(outbox.Request{Limit: 10}); len(c.Rows) != 0 || c.Fence != "" {
			t.Fatalf("claimed %v", rowIDs(c))
		}
	}
}

func TestSettleWritesEachTransition(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 8, 10)
	h.set(bson.D{is("last_error", "old"), is("attempts", 1), is("available_at", began)})
	c := h.claim(outbox.Request{Limit: 10})
	f := c.Fence
	outcomes := []outbox.Outcome{
		{ID: id(4), Fence: f, Verdict: outbox.Released},
		{ID: id(1), Fence: f, Verdict: outbox.Published},
		{ID: id(2), Fence: f, Verdict: outbox.Retry, Attempts: 2, Delay: time.Hour, Error: `it's "$no" \ good`},
		{ID: id(3), Fence: f, Verdict: outbox.Failed, Error: "$gone\xff"},
		{ID: id(5), Fence: "2026-01-01T00:00:00.000Z ffff", Verdict: outbox.Published},
		{ID: id(99), Fence: f, Verdict: outbox.Published},
		{ID: "no id", Fence: f, Verdict: outbox.Published},
		{ID: id(6), Fence: "2026-01-01 00:00:00+00", Verdict: outbox.Released},
		{ID: id(7), Fence: f, Verdict: outbox.Published},
	}
	for range 2 { // the second time because the first answer got lost: what was written is not lost
		if lost := h.settle(outcomes...); !slices.Equal(lost, []int{4, 5, 6, 7}) {
			t.Fatalf("lost %v", lost)
		}
		h.wantRow(1, "published attempts=1 published_at processing_at due")
		h.wantRow(2, `pending attempts=2 later error=it's "$no" \ good`)
		h.wantRow(3, "failed attempts=1 processing_at due error=$gone\uFFFD")
		h.wantRow(4, "pending attempts=1 due error=old")
		h.wantRow(5, "processing attempts=1 processing_at due error=old")
	}
	if d := time.Until(h.doc(2).Lookup("available_at").Time()); d < 3590*time.Second || d > 3600*time.Second {
		t.Fatalf("the retry is due in %s", d)
	}
	if lost := h.settle(outbox.Outcome{ID: id(3), Fence: f, Verdict: outbox.Published}); len(lost) != 1 {
		t.Fatalf("a failed row was published by its old claim")
	}
}

func TestEveryRowIsInExactlyOneShard(t *testing.T) {
	t.Parallel()
	for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
		h := newHouse(t, mongoserver.Shared(t), event.Forze, func(o *Options) { o.Claim = mode })
		h.insert(1, 200, 50)
		for n := 10; n <= 200; n += 10 {
			h.set(bson.D{is("ordering_key", nil)}, n)
			h.set(bson.D{is("ordering_key", "")}, n-1)
			h.set(bson.D{is("ordering_key", oid(n%40))}, n-2)
			h.set(bson.D{is("ordering_key", oid(n%40).Hex())}, n-3)
		}
		shardOf, seen := map[string]int{}, 0
		var fence outbox.Fence
		for s := range 8 {
			c := h.claim(outbox.Request{Limit: 500, Shards: outbox.Shards{Of: 8, Own: []int{s}}})
			for _, r := range c.Rows {
				seen++
				if was, twice := shardOf[r.Key]; twice && was != s {
					t.Fatalf("key %s is in shards %d and %d", r.Key, was, s)
				}
				shardOf[r.Key] = s
			}
			fence = max(fence, c.Fence)
		}
		if seen != 200 {
			t.Fatalf("the shards have %d rows", seen)
		}
		if n := len(h.claim(outbox.Request{Limit: 500, Shards: outbox.Shards{Of: 8}}).Rows); n != 0 {
			t.Fatalf("no shard has %d rows", n)
		}
		h.set(bson.D{is("status", pending)})
		all := h.claim(outbox.Request{Limit: 500, Shards: outbox.Shards{Of: 8, Own: []int{0, 1, 2, 3, 4, 5, 6, 7}}})
		if len(all.Rows) != 200 || all.Rows[9].Key != string(all.Rows[9].Event.Fields[event.EventID]) {
			t.Fatalf("all shards have %d rows", len(all.Rows))
		}
	}
}

func TestHeldKeysArePassedOverExceptTheirHeadsAndLooseRoutes(t *testing.T) {
	t.Parallel()
	for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
		h := newHouse(t, mongoserver.Shared(t), event.Forze, func(o *Options) { o.Claim = mode })
		h.insert(1, 17, 3) // k1: 1 4 7, k2: 2 5 8, k0: 3 6 9; route<n%3> goes along
		h.set(bson.D{is("ordering_key", `k"1\`)}, 1, 4, 7)
		h.set(bson.D{is("outbox_route", "loose")}, 8)
		uuid := bson.Binary{Subtype: 4, Data: []byte("0123456789abcdef")}
		h.set(bson.D{is("ordering_key", uuid)}, 10)
		h.set(bson.D{is("ordering_key", oid(10))}, 11)
		h.set(bson.D{is("ordering_key", int32(7))}, 12)
		h.set(bson.D{is("ordering_key", "")}, 13)
		h.set(bson.D{is("ordering_key", nil)}, 14)
		h.set(bson.D{is("ordering_key", 2.5)}, 15)
		h.set(bson.D{is("ordering_key", 12.0)}, 16)
		h.set(bson.D{is("ordering_key", true)}, 17)
		held := []string{`k"1\`, "k2", "30313233-3435-3637-3839-616263646566", id(10), "7", "2.5", "12", "true", "00000000-0000-0000-0001-000000000014"}
		c := h.claim(outbox.Request{
			Limit: 20, Held: held, Heads: []string{id(4), id(77), "nonsense"}, Loose: []string{"loose"}, Except: []string{id(6)},
		})
		same(t, string(mode), rowIDs(c), []string{id(3), id(4), id(8), id(9), id(13)})
	}
}

func TestADeletionThatMissesARowSaysWhich(t *testing.T) {
	t.Parallel()
	for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
		h := newHouse(t, mongoserver.Shared(t), event.Forze, func(o *Options) { o.Claim, o.AfterPublish = mode, Delete })
		h.insert(1, 6, 6)
		c := h.claim(outbox.Request{Limit: 6})
		h.set(bson.D{is("status", failed)}, 2)
		if _, err := h.c.DeleteOne(h.ctx(), bson.D{is(fieldID, oid(4))}); err != nil {
			t.Fatal(err)
		}
		var outcomes []outbox.Outcome
		for n := 1; n <= 5; n++ {
			outcomes = append(outcomes, outbox.Outcome{ID: id(n), Fence: c.Fence})
		}
		if lost := h.settle(outcomes...); !slices.Equal(lost, []int{1, 3}) {
			t.Fatalf("%s: lost %v", mode, lost)
		}
		if n, err := h.c.CountDocuments(h.ctx(), bson.D{}); n != 2 || err != nil {
			t.Fatalf("%s: %d rows are left: %v", mode, n, err)
		}
	}
}

// The events of one claim keep their bytes while others are read: nothing is written to them.
func TestAClaimKeepsItsBytes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, func(o *Options) { o.Claim = ClaimLease })
	h.insert(1, 200, 5)
	h.set(bson.D{is("payload", "as text")}, 1)
	claims := []*outbox.Claim{h.claim(outbox.Request{Limit: 100})}
	print := func(c *outbox.Claim) string { return fmt.Sprintf("%v", c.Rows) }
	was := print(claims[0])
	for range 20 {
		claims = append(claims, h.claim(outbox.Request{Limit: 100, Except: ids(1, 100)}))
	}
	if print(claims[0]) != was {
		t.Fatal("the rows of the first claim have changed")
	}
}
