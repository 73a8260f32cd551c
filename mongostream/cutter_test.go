package mongostream

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/event"
)

// A stream of random transactions and single events, cut into answers and batches at random
// places: each event lies in the span of its transaction, and each transaction has one end, at its last event.
func TestSpansAreTheTransactionsHoweverTheyAreCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type unit struct {
			txn       bool
			published []bool
		}
		units := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) unit {
			txn := rapid.Bool().Draw(t, "txn")
			n := 1
			if txn {
				n = rapid.IntRange(1, 6).Draw(t, "events")
			}
			return unit{txn, rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "published")}
		}), 1, 12).Draw(t, "units")

		var k cutter
		var spans []event.Span
		type end struct {
			events int
			at     string
		}
		var ends []end // of transactions with events
		open, place, seq := 0, "", 0
		flush := func() {
			for _, s := range spans {
				open += s.Events
				if !s.Done {
					if s.Events == 0 {
						t.Fatal("a span says nothing")
					}
					continue
				}
				if s.End.Token <= place {
					t.Fatalf("position %s comes after %s", s.End.Token, place)
				}
				place = s.End.Token
				if open > 0 {
					ends = append(ends, end{open, place})
				}
				open = 0
			}
			spans = spans[:0]
		}
		var want []end
		ordinals := uint32(0)
		for i, u := range units {
			published := 0
			for j, p := range u.published {
				seq++
				c := change{txn: int64(i)}
				if u.txn {
					c.lsid = []byte{1}
				}
				spans = k.begin(spans, &c)
				if j == 0 {
					ordinals = 0
				}
				if k.ordinal != ordinals {
					t.Fatalf("ordinal %d, want %d", k.ordinal, ordinals)
				}
				if p {
					published++
					ordinals++
				}
				spans = k.event(spans, event.AtToken(fmt.Sprintf("%04d", seq)), p)
				if rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
					spans = k.pause(spans)
					flush()
				}
			}
			last := fmt.Sprintf("%04d", seq)
			if published > 0 {
				want = append(want, end{published, last})
			}
			if rapid.IntRange(0, 3).Draw(t, "silence") == 0 {
				spans = k.pause(spans)
				flush()
				spans = k.idle(spans, event.AtToken(last+"+"))
				flush()
				if k.open || place != last+"+" {
					t.Fatalf("after silence open %v, at %s, want %s+", k.open, place, last)
				}
			}
		}
		spans = k.idle(spans, event.AtToken("9999"))
		flush()
		if fmt.Sprint(ends) != fmt.Sprint(want) {
			t.Fatalf("transactions %v, want %v", ends, want)
		}
		if place != "9999" || k.open {
			t.Fatalf("the end is %s, open %v", place, k.open)
		}
	})
}

func TestAnOldIdlePlaceIsNoPosition(t *testing.T) {
	t.Parallel()
	var k cutter
	spans := k.event(k.begin(nil, &change{}), event.AtToken("82AA"), true)
	if spans = k.idle(spans, event.AtToken("82A9")); len(spans) != 1 || spans[0].End.Token != "82AA" {
		t.Fatalf("%+v", spans)
	}
	if spans = k.idle(spans, event.AtToken("82AA")); len(spans) != 1 {
		t.Fatalf("%+v", spans)
	}
	if spans = k.idle(spans, event.AtToken("82AB")); len(spans) != 2 || spans[1] != (event.Span{Done: true, End: event.AtToken("82AB")}) {
		t.Fatalf("%+v", spans)
	}
}
