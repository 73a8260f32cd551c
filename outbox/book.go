package outbox

import (
	"sort"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// note is one event of the log that owes a mark.
type note struct {
	mark    Mark
	table   int
	ordinal uint32
	commit  event.Position
	// settled: the event was put aside, its row has its state already.
	settled bool
}

// book holds what the log brought and nobody has marked yet, in log order. A
// line ends where a transaction does:
//
//	notes[:lines[0].notes] belong to the transaction that ends at lines[0].end, and so on
//
// It has no lock of its own.
type book struct {
	notes []note
	lines []line
	open  int // notes at the end whose transaction is not complete yet
	ids   strings.Builder
}

type line struct {
	end   event.Position
	notes int
}

// write enters a batch. table says which table an event belongs to, below zero for none.
func (b *book) write(batch *event.Batch, table func(*event.Event) int) {
	events := batch.Events
	for _, span := range batch.Spans {
		for i := range events[:span.Events] {
			ev := &events[i]
			t := table(ev)
			if t < 0 {
				continue
			}
			b.notes = append(b.notes, note{
				mark:  Mark{ID: b.copyID(ev.Fields[event.RowID]), Xid: ev.Xid},
				table: t, ordinal: ev.Ordinal, commit: ev.Commit,
			})
			b.open++
		}
		if span.Done && b.open > 0 {
			b.lines = append(b.lines, line{span.End, b.open})
			b.open = 0
		}
		events = events[span.Events:]
	}
}

// copyID makes many small strings of few large ones: each is kept as long as one
// of its neighbours is, which all go soon.
func (b *book) copyID(id []byte) string {
	const page = 8 << 10
	if b.ids.Cap()-b.ids.Len() < len(id) {
		b.ids = strings.Builder{}
		b.ids.Grow(max(page, len(id)))
	}
	from := b.ids.Len()
	b.ids.Write(id)
	return b.ids.String()[from:]
}

// find is the note of an event; nil when it owes no mark.
func (b *book) find(commit event.Position, ordinal uint32) *note {
	i := sort.Search(len(b.notes), func(i int) bool {
		n := &b.notes[i]
		c := n.commit.Compare(commit)
		return c > 0 || c == 0 && n.ordinal >= ordinal
	})
	if i < len(b.notes) && b.notes[i].commit == commit && b.notes[i].ordinal == ordinal {
		return &b.notes[i]
	}
	return nil
}

// ripe answers how many notes belong to transactions that end at or below
// target, whole transactions, no more than limit unless the first has more; and
// where the last of them ends.
func (b *book) ripe(target event.Position, limit int) (notes, lines int, end event.Position) {
	for _, l := range b.lines {
		if l.end.Compare(target) > 0 || notes > 0 && notes+l.notes > limit {
			break
		}
		notes, lines, end = notes+l.notes, lines+1, l.end
	}
	return notes, lines, end
}

// tear takes the first notes and lines out.
func (b *book) tear(notes, lines int) {
	b.notes = shift(b.notes, notes)
	b.lines = shift(b.lines, lines)
}

// shift drops the first n, in place: the array is used again.
func shift[T any](s []T, n int) []T {
	rest := copy(s, s[n:])
	clear(s[rest:])
	return s[:rest]
}
