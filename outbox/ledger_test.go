package outbox

import (
	"strings"
	"testing"
	"time"
)

// Two rows of a key were reclaimed and went together; the first failed, and a look at
// the table comes before the outcome of the second is written.
func TestALookKeepsTheOrderOfRowsThatWait(t *testing.T) {
	t.Parallel()
	p := NewPoller([]Table{&markTable{}}, nil, nil, NewGate(), Options{}, Gear{}, PollerObserver{})
	h := p.ledger.get("k")
	later := time.Now().Add(time.Hour)
	p.ledger.wait(h, waiter{id: "r1", due: later})
	p.ledger.wait(h, waiter{id: "r2"})
	p.under[0]["r2"] = &entry{id: "r2", key: "k"}
	h.under = 1
	stamp := p.ledger.stamp
	rows := [][]Unfinished{{{ID: "r0", Key: "k"}, {ID: "r1", Key: "k"}, {ID: "r2", Key: "k", Processing: true}, {ID: "r3", Key: "k", Due: true}}}
	p.takeInLocked(rows, nil, []map[string]bool{{"r2": true}}, stamp)
	var got strings.Builder
	for _, w := range h.waiting {
		got.WriteString(w.id + " ")
	}
	if got.String() != "r0 r1 r2 r3 " || !h.waiting[1].due.Equal(later) {
		t.Fatalf("waiting are %s", got.String())
	}
	if h.waiting[2].processing {
		t.Fatal("a row of our own counts as somebody else's")
	}
}

func TestRowsThatWaitGoInOrderAsFarAsTheyAreDue(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := &keyState{waiting: []waiter{{id: "a"}, {id: "b", due: now}, {id: "c", due: now.Add(1)}, {id: "d"}}}
	if ids, inOrder := h.turn(now, 10); len(ids) != 2 || !inOrder {
		t.Fatalf("the turn is of %v", ids)
	}
	if ids, _ := h.turn(now.Add(1), 3); len(ids) != 3 {
		t.Fatalf("the turn is of %v, of three at most", ids)
	}
	h.parked, h.heads = true, []string{"p"}
	if ids, inOrder := h.turn(now, 10); len(ids) != 1 || ids[0] != "p" || inOrder {
		t.Fatalf("with a parked one the turn is of %v", ids)
	}
	h.under = 1
	if ids, _ := h.turn(now, 10); ids != nil {
		t.Fatalf("with one under way the turn is of %v", ids)
	}
}
