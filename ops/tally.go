package ops

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// tally keeps one C per name, for names that come from data. The first limit
// names get a C of their own; all others share rest, so that neither memory nor
// the number of series depends on the data.
//
// Reading is one atomic load and one map look-up: the map is copied on each
// write, which happens at most limit times.
type tally[C any] struct {
	limit int
	rest  C
	// restUsed says that rest stands for something.
	restUsed atomic.Bool
	mu       sync.Mutex // one writer
	named    atomic.Pointer[map[string]*C]
}

func (t *tally[C]) of(name string) *C {
	if !utf8.ValidString(name) {
		name = strings.ToValidUTF8(name, "\uFFFD")
	}
	if m := t.named.Load(); m != nil {
		if c, ok := (*m)[name]; ok {
			return c
		}
	}
	return t.add(name)
}

func (t *tally[C]) add(name string) *C {
	// A real name that equals restLabel must not make a second series of that name.
	if name == restLabel || name == "" || len(name) > maxLabelSize {
		return t.useRest()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var present map[string]*C
	if m := t.named.Load(); m != nil {
		present = *m
	}
	if c, ok := present[name]; ok {
		return c
	}
	if len(present) >= t.limit {
		return t.useRest()
	}
	next := make(map[string]*C, len(present)+1)
	maps.Copy(next, present)
	c := new(C)
	next[strings.Clone(name)] = c // the caller's string may alias a large buffer
	t.named.Store(&next)
	return c
}

func (t *tally[C]) useRest() *C {
	if !t.restUsed.Load() {
		t.restUsed.Store(true)
	}
	return &t.rest
}

// all visits the names in alphabetical order, restLabel last and only if it was needed.
func (t *tally[C]) all(yield func(string, *C) bool) {
	if m := t.named.Load(); m != nil {
		for _, name := range slices.Sorted(maps.Keys(*m)) {
			if !yield(name, (*m)[name]) {
				return
			}
		}
	}
	if t.restUsed.Load() {
		yield(restLabel, &t.rest)
	}
}
