package router

import (
	"fmt"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// template is a topic name with places for values of the event.
type template struct {
	text  string
	fixed string // the whole name, when there is nothing to fill in
	parts []part
}

// part is a piece of literal text, or the place of a field.
type part struct {
	literal string
	field   event.Field
	isField bool
}

var variables = []struct {
	name  string
	field event.Field
}{{"route", event.Route}, {"tenant", event.Tenant}, {"type", event.Type}}

func variableName(f event.Field) string {
	for _, v := range variables {
		if v.field == f {
			return v.name
		}
	}
	return f.String()
}

// parseTemplate says in why what is wrong with the text; empty when nothing is.
func parseTemplate(text string) (t template, why string) {
	t.text = text
	rest := text
	for rest != "" {
		literal, after, open := strings.Cut(rest, "{")
		if i := illegalByte(literal); i >= 0 {
			return t, fmt.Sprintf("topic %q contains %q: Kafka allows letters, digits, dot, underscore and hyphen", text, literal[i])
		}
		if literal != "" {
			t.parts = append(t.parts, part{literal: literal})
		}
		if !open {
			break
		}
		name, next, closed := strings.Cut(after, "}")
		if !closed {
			return t, fmt.Sprintf("topic %q has a { without a }", text)
		}
		p, why := variable(text, name)
		if why != "" {
			return t, why
		}
		t.parts = append(t.parts, p)
		rest = next
	}
	for _, p := range t.parts {
		if p.isField {
			return t, ""
		}
	}
	if why := checkTopic(text); why != "" {
		return t, why
	}
	t.fixed = text
	return t, ""
}

func variable(text, name string) (part, string) {
	names := make([]string, len(variables))
	for i, v := range variables {
		if v.name == name {
			return part{field: v.field, isField: true}, ""
		}
		names[i] = v.name
	}
	return part{}, fmt.Sprintf("topic %q uses {%s}, did you mean {%s}? ({route}, {tenant} and {type} exist)",
		text, name, nearest(name, names))
}

// missing finds a variable that the schema can never fill.
func (t *template) missing(s *event.Schema) (event.Field, bool) {
	for _, p := range t.parts {
		if p.isField && s.Columns[p.field] == "" {
			return p.field, true
		}
	}
	return 0, false
}

// expand appends the name to dst. It stops at a value that is missing, and at a
// name that is too long before copying it: a value may be megabytes.
func (t *template) expand(dst []byte, ev *event.Event) ([]byte, *event.Error) {
	size := 0
	for _, p := range t.parts {
		if !p.isField {
			size += len(p.literal)
			continue
		}
		v := ev.Fields[p.field]
		if len(v) == 0 {
			return dst, poison(AnchorTopic, "topic %q needs a value for {%s}, but the event's %s is NULL or empty",
				t.text, variableName(p.field), p.field)
		}
		size += len(v)
	}
	if size > maxTopicLen {
		return dst, poison(AnchorTopic, "topic %q would have a name of %d characters: Kafka allows %d", t.text, size, maxTopicLen)
	}
	for _, p := range t.parts {
		if p.isField {
			dst = append(dst, ev.Fields[p.field]...)
		} else {
			dst = append(dst, p.literal...)
		}
	}
	return dst, nil
}
