package decoder

import (
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// Row makes an event of an inserted row.
//
// The event's slices alias the insert's bytes, or scratch, which grows by
// appending and is given back; both must live as long as the event. A bytea
// column in text form is decoded in place: its bytes in the input are written to,
// and the insert's value says so afterwards (Form is then Binary).
//
// ev is written to for all outcomes except IgnoredRelation, and means something
// for Publish and for Refused with a Poison error; then it is filled as far as
// the row could be read, so that its key can be held. A Poison error is about
// this row, a Halt about its relation.
func (m *Mapper) Row(ins *Insert, tx Tx, ev *event.Event, scratch []byte) (Outcome, []byte, error) {
	p := m.planFor(ins.Relation)
	if p.foreign {
		return IgnoredRelation, scratch, nil
	}
	if p.err != nil {
		return Refused, scratch, p.err
	}
	m.start(ev, tx, p.name)
	scratch, poison, halt := p.fill(p.steps[:p.gates], ins.New, ev, scratch)
	if halt != nil {
		return Refused, scratch, halt
	}
	if p.gates > 0 {
		o, err := m.judge(ev)
		if err != nil {
			poison = first(poison, p.poison(ev, err.Error()))
		} else if o != Publish {
			return o, scratch, nil
		}
	}
	scratch, later, halt := p.fill(p.steps[p.gates:], ins.New, ev, scratch)
	if halt != nil {
		return Refused, scratch, halt
	}
	if poison = first(poison, later); poison != nil {
		return Refused, scratch, poison
	}
	return Publish, scratch, nil
}

// fill takes the steps. It goes on after a poison error and gives the first one.
func (p *plan) fill(steps []step, row Tuple, ev *event.Event, scratch []byte) (grown []byte, poison, halt error) {
	for i := range steps {
		s := &steps[i]
		v := &row[s.column]
		b := v.Data
		if v.Form != Text || s.typ == classBytea {
			var err error
			b, scratch, err = p.convert(s, v, ev, scratch)
			if err != nil {
				if event.ClassOf(err) == event.Halt {
					return scratch, nil, err
				}
				poison = first(poison, err)
			}
		}
		for _, f := range s.fields {
			ev.Fields[f] = b
		}
		for _, x := range s.extras {
			ev.Extra[x] = b
		}
	}
	return scratch, poison, nil
}

// convert handles what is not text that stands as it is.
func (p *plan) convert(s *step, v *Value, ev *event.Event, scratch []byte) ([]byte, []byte, error) {
	column := &p.rel.Columns[s.column]
	switch v.Form {
	case Null:
		if s.notNull < event.NumFields {
			return nil, scratch, p.poison(ev, fmt.Sprintf("column %q (field %s) is NULL", column.Name, s.notNull))
		}
		return nil, scratch, nil
	case Unchanged:
		return nil, scratch, &event.Error{
			Class: event.Halt,
			What: fmt.Sprintf("a row inserted into %s by the transaction at %s has no value for column %q, only the mark for an unchanged one",
				p.name, ev.Commit, column.Name),
			Remedy: remedyReport, Anchor: AnchorMalformed,
		}
	case Text:
		raw, ok := decodeBytea(v.Data)
		if !ok {
			return v.Data, scratch, p.poison(ev, fmt.Sprintf("column %q is no bytea in hex or escape form", column.Name))
		}
		v.Form, v.Data = Binary, raw
		return raw, scratch, nil
	}
	b, scratch, problem := s.typ.binaryToText(v.Data, scratch)
	switch problem {
	case "":
		return b, scratch, nil
	case problemUnknownType:
		return nil, scratch, &event.Error{
			Class: event.Halt, Fault: event.FaultPrecondition,
			What:   fmt.Sprintf("relation %s sends column %q in the binary form of type OID %d, which is unknown here", p.name, column.Name, column.TypeOID),
			Remedy: "start replication without binary 'true', or leave the column out of the mapping",
			Anchor: AnchorBinaryType,
		}
	}
	return nil, scratch, &event.Error{
		Class: event.Halt,
		What: fmt.Sprintf("relation %s sends column %q of type OID %d in %d bytes: %s",
			p.name, column.Name, column.TypeOID, len(v.Data), problem),
		Remedy: "start replication without binary 'true' and report it with the server's version", Anchor: AnchorBinaryType,
	}
}

// poison is about one row. It names the row by its place in the log, never by
// its contents.
func (p *plan) poison(ev *event.Event, what string) error {
	return &event.Error{
		Class:  event.Poison,
		What:   fmt.Sprintf("row %d of the transaction at %s in %s: %s", ev.Ordinal, ev.Commit, p.name, what),
		Anchor: AnchorPoisonRow,
	}
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
