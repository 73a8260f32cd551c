package outbox

import (
	"context"
	"errors"

	"github.com/walrelay/walrelay/event"
)

// Held reports whether later events of the key must wait.
func (s *Scribe) Held(key []byte) bool { return s.gate.Held(key) }

// Park puts an event aside. Its key is held before the store is asked, so that
// nothing passes meanwhile.
func (s *Scribe) Park(ctx context.Context, rec *event.Record, _ event.Ticket, why error) error {
	if s.parking == nil {
		return errNoParking
	}
	p := parkedOf(rec, why)
	behind := errors.Is(why, event.ErrHeld)
	var err error
	switch {
	case behind:
		id := GateID(p.Row, p.EventID)
		s.gate.LeftBehind(p.Key, id)
		if err = s.parking.LeaveBehind(ctx, p); err == nil {
			s.gate.InPlace(p.Key, id)
		}
	default:
		if p.Key != "" {
			// A sweep that looks at the store now must not take its silence for an answer.
			defer s.gate.PutAside(p.Key)()
		}
		err = s.parking.Park(ctx, p)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.book.find(p.Commit, p.Ordinal); n != nil {
		n.settled = true
	}
	return nil
}

// Lettered notes that a dead letter took the event's place: its row fails.
func (s *Scribe) Lettered(rec *event.Record, _ event.Ticket, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.book.find(rec.Origin.Commit, rec.Origin.Ordinal); n != nil {
		n.mark.Error = "dead-lettered: " + why.Error()
	}
}

// Return refuses: what the log brings waits for its topic, and the log with it.
func (s *Scribe) Return(*event.Record, event.Ticket, error) bool { return false }

// GateID is the name by which [Gate] remembers an event that was left behind.
func GateID(row, eventID string) string {
	if row != "" {
		return row
	}
	return eventID
}

// parkedOf describes the event of a record. The record itself is handed along as
// it stands; the store copies what it keeps.
func parkedOf(rec *event.Record, why error) Parked {
	p := Parked{
		State: StateParked, Relation: rec.Origin.Relation, Row: string(rec.Origin.Row), Xid: rec.Origin.Xid,
		EventID: string(rec.Origin.EventID), Route: string(rec.Origin.Route), Topic: rec.Topic,
		Commit: rec.Origin.Commit, Ordinal: rec.Origin.Ordinal, Record: rec, Reason: reasonOf(why), Error: why.Error(),
	}
	if !rec.Loose {
		p.Key = string(rec.Key)
	}
	if errors.Is(why, event.ErrHeld) {
		p.State = StateBehind
	}
	return p
}

// reasonOf is the word by which parked events are grouped.
func reasonOf(why error) string {
	var r interface{ Reason() string }
	switch {
	case errors.Is(why, event.ErrHeld):
		return "behind"
	case errors.As(why, &r):
		return r.Reason()
	}
	return "refused"
}
