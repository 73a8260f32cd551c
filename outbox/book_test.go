package outbox

import (
	"testing"

	"github.com/walrelay/walrelay/event"
)

func TestBookFindsEachNoteAmongMany(t *testing.T) {
	t.Parallel()
	var b book
	for i := range 100 {
		b.write(transaction(event.LSN(10*i+10), "x", "y", "z"), func(*event.Event) int { return 0 })
	}
	b.tear(30, 10)
	for i := 10; i < 100; i++ {
		for ord := range 3 {
			n := b.find(event.AtLSN(event.LSN(10*i+9)), uint32(ord))
			if n == nil || n.ordinal != uint32(ord) || n.commit != event.AtLSN(event.LSN(10*i+9)) {
				t.Fatalf("note %d/%d not found: %+v", i, ord, n)
			}
		}
	}
	if b.find(event.AtLSN(9), 0) != nil || b.find(event.AtLSN(109), 3) != nil {
		t.Fatal("a note was found that is not there")
	}
	if notes, lines, end := b.ripe(event.AtLSN(125), 1000); notes != 6 || lines != 2 || end != event.AtLSN(120) {
		t.Fatalf("ripe = %d notes, %d lines, end %s; want 6, 2, 0/78", notes, lines, end)
	}
	if notes, _, _ := b.ripe(event.AtLSN(1000), 10); notes != 9 {
		t.Fatalf("ripe took %d notes of transactions of 3 with a limit of 10, want 9", notes)
	}
}
