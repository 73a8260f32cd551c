package decoder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// objectReader reads the JSON object of a logical message into an event.
//
// Members carry the schema's column names, the names of event.Field where no
// column has that name, the names of extra columns, and "headers". Each may come
// once. The payload is taken as the bytes that stand there, whatever they are
// (null included); other values are strings, which are decoded, or numbers, true
// and false, which are not; null means absent.
type objectReader struct {
	scan    scanner
	members map[string]*member
	// names are the keys of members, for suggestions.
	names []string
	// round counts messages. A member or field whose round it is has been seen, so
	// that nothing needs to be cleared in between.
	round  uint64
	fields [event.NumFields]uint64
	// interned keeps the strings of header names, so that a name costs memory once.
	interned map[string]string
}

type member struct {
	fields  []event.Field
	extras  []int
	headers bool
	round   uint64
}

func (o *objectReader) learn(schema *event.Schema, extra []string) {
	o.members = make(map[string]*member)
	o.interned = make(map[string]string)
	at := func(name string) *member {
		if o.members[name] == nil {
			o.members[name] = &member{}
			o.names = append(o.names, name)
		}
		return o.members[name]
	}
	for f, column := range schema.Columns {
		if column != "" {
			e := at(column)
			e.fields = append(e.fields, event.Field(f))
		}
	}
	for i, name := range extra {
		e := at(name)
		e.extras = append(e.extras, i)
	}
	for f := range event.NumFields {
		if o.members[f.String()] == nil {
			at(f.String()).fields = []event.Field{f}
		}
	}
	if o.members["headers"] == nil {
		at("headers").headers = true
	}
}

// read fills ev. It reads on after a problem that leaves the rest readable, and
// gives the first one. Problems name places and members, never contents.
func (o *objectReader) read(content []byte, ev *event.Event, scratch []byte) (grown []byte, problem string) {
	o.round++
	s := &o.scan
	s.reset(content)
	if !s.take('{') {
		ev.Fields[event.Payload] = present(content)
		return scratch, fmt.Sprintf("the content is not a JSON object: byte %d is no opening brace", s.off)
	}
	for isFirst := true; ; isFirst = false {
		name, more, ok := s.key(isFirst)
		if ok && !more {
			break
		}
		var span []byte
		if ok {
			span, ok = s.value()
		}
		if !ok {
			return o.unreadable(content, ev, scratch)
		}
		var p string
		scratch, p = o.member(name, span, ev, scratch)
		problem = firstProblem(problem, p)
	}
	if !s.atEnd() {
		return o.unreadable(content, ev, scratch)
	}
	return scratch, problem
}

// unreadable makes the whole content the payload of an otherwise empty event.
func (o *objectReader) unreadable(content []byte, ev *event.Event, scratch []byte) ([]byte, string) {
	ev.Fields = [event.NumFields][]byte{event.Payload: content}
	clear(ev.Extra)
	ev.Headers = ev.Headers[:0]
	return scratch, fmt.Sprintf("malformed JSON at byte %d of %d", o.scan.off, len(content))
}

func (o *objectReader) member(rawName, span []byte, ev *event.Event, scratch []byte) (grown []byte, problem string) {
	name, scratch, problem := decodeString(rawName, scratch)
	if problem != "" {
		return scratch, "the name of a member " + problem
	}
	e := o.members[string(name)]
	if e == nil {
		return scratch, o.unknown(name)
	}
	if o.seen(e) {
		return scratch, fmt.Sprintf("member %q comes twice, or under two names", name)
	}
	if e.headers {
		return o.headers(span, ev, scratch)
	}
	value := span
	if !slices.Contains(e.fields, event.Payload) {
		if value, scratch, problem = scalar(span, scratch); problem != "" {
			return scratch, fmt.Sprintf("member %q %s", name, problem)
		}
	}
	for _, f := range e.fields {
		ev.Fields[f] = value
	}
	for _, x := range e.extras {
		ev.Extra[x] = value
	}
	return scratch, ""
}

// seen marks a member and its fields, and reports whether one of them was marked
// already in this message.
func (o *objectReader) seen(e *member) bool {
	before := e.round == o.round
	e.round = o.round
	for _, f := range e.fields {
		before = before || o.fields[f] == o.round
		o.fields[f] = o.round
	}
	return before
}

// scalar gives a value as text.
func scalar(span, scratch []byte) (text, grown []byte, problem string) {
	switch span[0] {
	case '"':
		text, scratch, problem = decodeString(span[1:len(span)-1], scratch)
		if problem != "" {
			return nil, scratch, problem
		}
		return text, scratch, ""
	case '{', '[':
		return nil, scratch, "is an object or an array where a string or a number is wanted"
	case 'n':
		return nil, scratch, ""
	}
	return span, scratch, ""
}

func (o *objectReader) unknown(name []byte) string {
	shown := clip(name)
	if near := nearest(string(shown), o.names); near != "" {
		return fmt.Sprintf("member %q is unknown: did you mean %q?", shown, near)
	}
	return fmt.Sprintf("member %q is unknown: want %s", shown, strings.Join(o.names, ", "))
}

func firstProblem(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
