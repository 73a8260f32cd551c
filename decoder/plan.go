package decoder

import (
	"fmt"
	"slices"

	"github.com/walrelay/walrelay/event"
)

// plan says how to read the rows of one relation in one shape. It is made by
// names at the relation's first row, so that a value is never taken from another
// column because one was added or dropped.
type plan struct {
	rel *Relation
	// name is schema.table, made once.
	name string
	// foreign: no outbox table of ours.
	foreign bool
	// err: the relation lacks a required column, or sends one in an unreadable type.
	err error
	// steps[:gates] decide whether the row is an event at all; they come first so
	// that a row that is none is not looked at further.
	steps []step
	gates int
}

// step reads one column into the fields that it serves.
type step struct {
	column int
	typ    typeClass
	fields []event.Field
	extras []int
	// notNull is the field for whose sake NULL is poison, or NumFields.
	notNull event.Field
}

func isGate(f event.Field) bool {
	return f == event.Status || f == event.AvailableAt || f == event.PublishedAt
}

// nullable: NULL in these is for the router to judge (policy may want a
// tombstone, or another key).
func nullable(f event.Field) bool {
	return f == event.Payload || f == event.Route || f == event.Key
}

// planFor finds the plan of a relation, making it at the first row.
func (m *Mapper) planFor(rel *Relation) *plan {
	if m.last != nil && m.last.rel == rel {
		return m.last
	}
	p := m.plans[rel.ID]
	if p == nil || p.rel != rel {
		p = m.newPlan(rel)
		m.plans[rel.ID] = p
	}
	m.last = p
	return p
}

func (m *Mapper) newPlan(rel *Relation) *plan {
	p := &plan{rel: rel, name: rel.String()}
	schema := rel.Namespace
	if schema == "" {
		schema = "pg_catalog"
	}
	if _, ours := m.tables[Table{schema, rel.Name}]; !ours {
		p.foreign = true
		return p
	}
	for f := range event.NumFields {
		name := m.schema.Columns[f]
		if m.schema.Required[f] && (name == "" || rel.Column(name) < 0) {
			p.err = &event.Error{
				Class: event.Halt, Fault: event.FaultPrecondition,
				What: fmt.Sprintf("relation %s has no column %q for the required field %s", p.name, name, f),
				Remedy: "add the column, name the right one under schema.columns, " +
					"or add it to the publication's column list",
				Anchor: AnchorMissingColumn,
			}
			return p
		}
	}
	for _, gate := range []bool{true, false} {
		for i := range rel.Columns {
			if s, ok := m.newStep(rel, i); ok && s.gates() == gate {
				p.steps = append(p.steps, s)
			}
		}
		if gate {
			p.gates = len(p.steps)
		}
	}
	return p
}

func (m *Mapper) newStep(rel *Relation, column int) (step, bool) {
	c := &rel.Columns[column]
	s := step{column: column, typ: classOf(c.TypeOID), notNull: event.NumFields}
	for f := range event.NumFields {
		if m.schema.Columns[f] != c.Name {
			continue
		}
		s.fields = append(s.fields, f)
		if m.schema.Required[f] && !nullable(f) {
			s.notNull = f
		}
	}
	for i, name := range m.extra {
		if name == c.Name {
			s.extras = append(s.extras, i)
		}
	}
	return s, len(s.fields)+len(s.extras) > 0
}

func (s *step) gates() bool {
	return slices.ContainsFunc(s.fields, isGate)
}
