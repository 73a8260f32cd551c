package outbox

import (
	"context"

	"github.com/walrelay/walrelay/event"
)

// keptWhole are the events that the parking store kept whole before the log was read. A
// process that ended between putting one aside and confirming it has the log bring it again;
// it is in the store's hands, and is let go from there, once. The store may have let it go by
// then, and forgotten it: so it is remembered how things stood at the beginning, before anything went.
type keptWhole struct {
	events map[logPlace]keptName
	last   event.Position // the commit of the last of them
}

// logPlace is where the log has an event.
type logPlace struct {
	commit  event.Position
	ordinal uint32
}

// keptName tells an event from one at the same place of another log.
type keptName struct{ row, eventID string }

func (k *keptWhole) load(ctx context.Context, s *Scribe) error {
	list, err := persist(ctx, s, "reading what is kept whole", s.parking.Kept)
	if err != nil || len(list) == 0 {
		return err
	}
	k.events = make(map[logPlace]keptName, len(list))
	for i := range list {
		p := &list[i]
		k.events[logPlace{p.Commit, p.Ordinal}] = keptName{p.Row, p.EventID}
		if p.Commit.Compare(k.last) > 0 {
			k.last = p.Commit
		}
	}
	return nil
}

// takeOut removes what is kept from a batch, and forgets all of it once the log is past.
func (k *keptWhole) takeOut(batch *event.Batch) (n int) {
	n = takeOut(batch, func(ev *event.Event) bool {
		name, ok := k.events[logPlace{ev.Commit, ev.Ordinal}]
		return ok && name.row == string(ev.Fields[event.RowID]) && name.eventID == string(ev.Fields[event.EventID])
	})
	for _, span := range batch.Spans {
		if span.Done && span.End.Compare(k.last) > 0 {
			*k = keptWhole{}
			break
		}
	}
	return n
}
