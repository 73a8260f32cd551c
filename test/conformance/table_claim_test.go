package conformance

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

func TestClaimTakesRowsInTableOrderAndWritesOnlyTheClaim(t *testing.T) {
	for name, o := range map[string]options{"as it comes": {}, "last": {last: true}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, o, func(t *testing.T, y *yard) {
				y.put(1, 10, 10)
				y.change(fields{"available_at": moment(-time.Minute), "attempts": 2, "last_error": "x"}, 4)
				y.change(fields{"available_at": moment(time.Hour)}, 2)
				y.change(fields{"hlc": nil}, 1)
				y.change(fields{"status": "failed"}, 3)
				first, then := []int{4, 5, 6, 7}, []int{8, 9, 10, 1}
				if y.missingFirst(o) {
					first, then = []int{1, 4, 5, 6}, []int{7, 8, 9, 10}
				}
				c := y.claim(outbox.Request{Limit: 4})
				y.took("first claim", c, first...)
				r := &c.Rows[slices.Index(first, 4)]
				if r.Attempts != 2 || r.Route != "route1" || r.Key != "k4" || r.Event.Relation != y.relation() || r.Event.CommitMicros != made(4).UnixMicro() {
					t.Fatalf("row %+v", r)
				}
				y.wantRow(4, "processing attempts=2 processing_at due error=x")
				y.wantRow(5, "processing attempts=0 processing_at")
				y.wantRow(2, "pending attempts=0 later")
				y.took("second claim", y.claim(outbox.Request{Limit: 10}), then...)
				y.took("third claim", y.claim(outbox.Request{Limit: 10}))
			})
		})
	}
}

func TestClaimedEventIsWhatWasWritten(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 1, 1)
		c := y.claim(outbox.Request{Limit: 1})
		y.took("claim", c, 1)
		ev := &c.Rows[0].Event
		for f, want := range map[event.Field]string{
			event.RowID: y.id(1), event.EventID: eventID(1), event.Route: "route1", event.Key: "k0", event.Type: "made",
		} {
			if got := string(ev.Fields[f]); got != want {
				t.Errorf("%v is %q, want %q", f, got, want)
			}
		}
		if got := string(ev.Fields[event.Payload]); got != `{"a": 1}` && got != `{"a":1}` {
			t.Errorf("payload %s", got)
		}
		if ev.Refused != nil || !ev.Commit.IsZero() || ev.Fields[event.Tenant] != nil {
			t.Errorf("refused %v, commit %s, tenant %q", ev.Refused, ev.Commit, ev.Fields[event.Tenant])
		}
	})
}

func TestEveryRowIsInExactlyOneShard(t *testing.T) {
	everywhere(t, options{lease: true}, func(t *testing.T, y *yard) {
		y.put(1, 200, 50)
		for n := 10; n <= 200; n += 10 {
			y.change(fields{"ordering_key": nil}, n)
			y.change(fields{"ordering_key": ""}, n-9)
		}
		shardOf, seen := map[string]int{}, 0
		for s := range 8 {
			for _, r := range y.claim(outbox.Request{Limit: 500, Shards: outbox.Shards{Of: 8, Own: []int{s}}}).Rows {
				seen++
				if was, twice := shardOf[r.Key]; twice && was != s {
					t.Fatalf("key %s is in shards %d and %d", r.Key, was, s)
				}
				shardOf[r.Key] = s
			}
		}
		if seen != 200 {
			t.Fatalf("the shards have %d rows", seen)
		}
		if n := len(y.claim(outbox.Request{Limit: 500, Shards: outbox.Shards{Of: 8}}).Rows); n != 0 {
			t.Fatalf("no shard has %d rows", n)
		}
		all := y.claim(outbox.Request{Limit: 500, Shards: outbox.Shards{Of: 8, Own: span(0, 7)}})
		if len(all.Rows) != 200 || all.Rows[9].Key != eventID(10) || all.Rows[0].Key != eventID(1) {
			t.Fatalf("all shards have %d rows", len(all.Rows))
		}
		y.took("the first of all", y.claim(outbox.Request{Limit: 5, Shards: outbox.Shards{Of: 8, Own: span(0, 7)}}), 1, 2, 3, 4, 5)
	})
}

func TestHeldKeysArePassedOverExceptTheirHeadsAndLooseRoutes(t *testing.T) {
	for name, o := range map[string]options{"row": {}, "lease": {lease: true}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, o, func(t *testing.T, y *yard) {
				y.put(1, 9, 3) // k1: 1 4 7, k2: 2 5 8, k0: 3 6 9; route<n%3> goes along
				y.change(fields{"ordering_key": `k"1\`}, 1, 4, 7)
				y.change(fields{"outbox_route": "loose"}, 8)
				c := y.claim(outbox.Request{
					Limit: 9, Held: []string{`k"1\`, "k2"}, Heads: y.ids(4, 77), Loose: []string{"loose"}, Except: y.ids(6),
				})
				y.took("claim", c, 3, 4, 8, 9)
			})
		})
	}
}

// Rows that were given back one after the other are due in another order than they stand
// in; the first of its key is the one whose turn it is, whichever is due longest.
func TestWhoseTurnItIsIsTakenInTableOrderWhateverTheirDueTimes(t *testing.T) {
	for name, o := range map[string]options{"row": {}, "lease": {lease: true}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, o, func(t *testing.T, y *yard) {
				y.put(1, 9, 1)
				y.put(10, 12, 3)
				for n := 1; n <= 9; n++ {
					y.change(fields{
						"attempts": 1, "ordering_key": "held", "outbox_route": "route1", "available_at": moment(-time.Duration(n) * time.Minute),
					}, n)
				}
				y.change(fields{"outbox_route": "loose", "ordering_key": "held"}, 11)
				req := outbox.Request{
					Limit: 4, Held: []string{"held"}, Heads: y.ids(1, 2, 3, 4, 5, 6, 7, 8, 9, 11), Loose: []string{"loose"}, Except: y.ids(2),
				}
				y.took("claim", y.claim(req), 1, 3, 4, 5)
				req.Limit, req.Except = 20, y.ids(1, 2, 3, 4, 5, 10)
				y.took("the rest", y.claim(req), 6, 7, 8, 9, 11, 12)
			})
		})
	}
}

// A row without a key is held by its own event id.
func TestRowsWithoutAKeyAreHeldByTheirEventIDs(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 4, 4)
		y.change(fields{"ordering_key": nil}, 1, 2)
		y.change(fields{"ordering_key": ""}, 3)
		y.took("claim", y.claim(outbox.Request{Limit: 9, Held: []string{eventID(1), eventID(3), ""}}), 2, 4)
	})
}

func TestAClaimOfCertainRowsTakesThoseThatArePendingAndDue(t *testing.T) {
	for name, o := range map[string]options{"row": {}, "lease": {lease: true}} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, o, func(t *testing.T, y *yard) {
				y.put(1, 9, 9)
				y.change(fields{"status": "published"}, 2)
				y.change(fields{"available_at": moment(time.Hour)}, 3)
				y.change(fields{"available_at": moment(-time.Hour)}, 4)
				y.took("claim", y.claim(outbox.Request{Limit: 3, Only: y.ids(7, 5, 4, 3, 2, 1, 99), Held: []string{"k1"}}), 4, 5, 7)
				y.took("claim of no rows", y.claim(outbox.Request{Limit: 3, Only: []string{}}))
			})
		})
	}
}

func TestALeaseWritesNothingAndItsOutcomesAreGuardedByTheState(t *testing.T) {
	everywhere(t, options{lease: true}, func(t *testing.T, y *yard) {
		y.put(1, 5, 5)
		if tr := y.Traits(); tr.Claims || !tr.Retries || !tr.States {
			t.Fatalf("traits %+v", tr)
		}
		c := y.claim(outbox.Request{Limit: 5})
		if c.Fence != "" {
			t.Fatalf("fence %s", c.Fence)
		}
		y.wantRow(1, "pending attempts=0")
		y.took("again", y.claim(outbox.Request{Limit: 5}), span(1, 5)...)
		y.took("except", y.claim(outbox.Request{Limit: 2, Except: y.ids(1, 3)}), 2, 4)
		y.change(fields{"status": "failed"}, 2)
		lost := y.settle(outbox.Outcome{ID: y.id(5), Verdict: outbox.Released}, outbox.Outcome{ID: y.id(2)}, outbox.Outcome{ID: y.id(1)},
			outbox.Outcome{ID: y.id(3), Verdict: outbox.Retry, Attempts: 1, Error: "x"}, outbox.Outcome{ID: y.id(4), Verdict: outbox.Failed, Error: "y"})
		if !slices.Equal(lost, []int{1}) {
			t.Fatalf("lost %v", lost)
		}
		y.wantRow(1, "published attempts=0 published_at")
		y.wantRow(3, "pending attempts=1 due error=x")
		y.wantRow(4, "failed attempts=0 error=y")
		y.wantRow(5, "pending attempts=0")
		fence, held, err := y.Renew(y.ctx(), "", y.ids(span(1, 5)...))
		slices.Sort(held)
		if fence != "" || err != nil {
			t.Fatal(fence, err)
		}
		y.same("renewed", held, 3, 5)
	})
}

func TestClaimersBesideEachOtherTakeEachRowOnce(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		const rows = 1000
		y.put(1, rows, 100)
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			taken = map[string]int{}
		)
		for range 3 {
			table := y.another(options{}).Table
			wg.Go(func() {
				for {
					c, err := table.Claim(y.ctx(), outbox.Request{Limit: 50})
					if err != nil {
						t.Errorf("claim: %v", err)
						return
					}
					mu.Lock()
					for _, id := range rowIDs(c) {
						taken[id]++
					}
					enough := len(taken) == rows
					mu.Unlock()
					outcomes := make([]outbox.Outcome, len(c.Rows))
					for i := range c.Rows {
						outcomes[i] = outbox.Outcome{ID: c.Rows[i].ID, Fence: c.Fence}
					}
					if !slices.IsSortedFunc(c.Rows, func(a, b outbox.Row) int { return int(a.Event.CommitMicros - b.Event.CommitMicros) }) {
						t.Error("a claim is not in table order")
					}
					if lost, err := table.Settle(y.ctx(), outcomes); err != nil || len(lost) > 0 {
						t.Errorf("lost %d: %v", len(lost), err)
					}
					if enough || t.Failed() {
						return
					}
				}
			})
		}
		wg.Wait()
		for row, n := range taken {
			if n != 1 {
				t.Fatalf("row %s was taken %d times", row, n)
			}
		}
		for _, n := range []int{1, rows / 2, rows} {
			y.wantRow(n, "published attempts=0 published_at")
		}
	})
}

func TestASnapshotLeavesOutWhatWaits(t *testing.T) {
	everywhere(t, options{}, func(t *testing.T, y *yard) {
		y.put(1, 9, 3) // keys k0, k1, k2 in turn
		y.change(fields{"available_at": moment(time.Hour)}, 5)
		y.change(fields{"available_at": moment(-time.Hour)}, 8)
		pending := func(req outbox.Request, want ...int) event.Position {
			t.Helper()
			got, at, err := y.Pending(y.ctx(), req)
			if err != nil {
				t.Fatal(err)
			}
			y.same("pending", got, want...)
			return at
		}
		before := pending(outbox.Request{Limit: 4, Held: []string{"k0", "k1"}, Heads: y.ids(4)}, 2, 4, 8)
		pending(outbox.Request{Limit: 4}, 1, 2, 3, 4)
		pending(outbox.Request{Limit: 4, Shards: outbox.Shards{Of: 4}})
		y.wantRow(1, "pending attempts=0")
		y.put(10, 10, 3)
		if after := pending(outbox.Request{Limit: 1}, 1); before.IsZero() || after.Compare(before) <= 0 {
			t.Fatalf("the log ended at %s, and a row later at %s", before, after)
		}
	})
}
