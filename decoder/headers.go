package decoder

import (
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// Bounds of the table of header names. Names beyond them work, at the price of
// one allocation each.
const (
	mostInterned    = 1024
	longestInterned = 128
)

// headers reads the object of strings that a message brings along. Its syntax has
// been checked already.
func (o *objectReader) headers(span []byte, ev *event.Event, scratch []byte) (grown []byte, problem string) {
	if span[0] == 'n' {
		return scratch, ""
	}
	if span[0] != '{' {
		return scratch, `member "headers" is no object of strings`
	}
	// The scanner stands behind the span; it is put back there afterwards.
	s := &o.scan
	src, off := s.src, s.off
	defer func() { s.src, s.off = src, off }()
	s.reset(span)
	s.take('{')
	var many map[string]struct{}
	for isFirst := true; ; isFirst = false {
		rawName, more, _ := s.key(isFirst)
		if !more {
			return scratch, problem
		}
		raw, _ := s.value()
		var name, value []byte
		var p string
		if name, scratch, p = decodeString(rawName, scratch); p != "" {
			problem = firstProblem(problem, "the name of a header "+p)
			continue
		}
		if raw[0] != '"' {
			problem = firstProblem(problem, fmt.Sprintf("header %q is no string", clip(name)))
			continue
		}
		if value, scratch, p = decodeString(raw[1:len(raw)-1], scratch); p != "" {
			problem = firstProblem(problem, fmt.Sprintf("header %q %s", clip(name), p))
			continue
		}
		key := o.intern(name)
		if many == nil && len(ev.Headers) >= 32 {
			many = make(map[string]struct{})
			for i := range ev.Headers {
				many[ev.Headers[i].Key] = struct{}{}
			}
		}
		if hasHeader(ev.Headers, many, key) {
			problem = firstProblem(problem, fmt.Sprintf("header %q comes twice", clip(name)))
			continue
		}
		if many != nil {
			many[key] = struct{}{}
		}
		ev.Headers = append(ev.Headers, event.Header{Key: key, Value: value})
	}
}

// hasHeader looks into the set when there is one, which keeps thousands of headers
// from costing their square.
func hasHeader(headers []event.Header, many map[string]struct{}, key string) bool {
	if many != nil {
		_, has := many[key]
		return has
	}
	for i := range headers {
		if headers[i].Key == key {
			return true
		}
	}
	return false
}

func (o *objectReader) intern(name []byte) string {
	if s, ok := o.interned[string(name)]; ok {
		return s
	}
	s := string(name)
	if len(s) <= longestInterned && len(o.interned) < mostInterned {
		o.interned[s] = s
	}
	return s
}

// clip keeps a name short enough for a message.
func clip(name []byte) []byte { return name[:min(len(name), 64)] }
