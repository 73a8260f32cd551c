package router

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// plan is a route that is ready for use.
type plan struct {
	Route
	topic    template
	reserved map[string]bool // names of headers that a message may not bring
}

// newPlan takes a route that was found valid.
func newPlan(rt Route, preset event.Preset) plan {
	rt = rt.withDefaults(preset)
	t, _ := parseTemplate(rt.Topic)
	return plan{Route: rt, topic: t, reserved: reservedNames(preset, rt.Envelope == EnvelopeCloudEvents)}
}

func (p *plan) isReserved(name string) bool {
	return strings.HasPrefix(name, ownPrefix) || p.reserved[name]
}

// table finds the plan of a route value. The exact name wins, then the longest
// prefix, then the rest.
type table struct {
	exact  map[string]*plan
	prefix map[string]*plan // by the prefix with its dot
	rest   *plan            // nil when the table has no "*"
	size   int
}

// checkPattern says what is wrong with a route's Match; empty when nothing is.
func checkPattern(match string) string {
	switch {
	case match == "":
		return "match is empty: want an exact route, prefix.* or *"
	case match == "*":
		return ""
	case match == ".*":
		return `match ".*" has no prefix: want an exact route, prefix.* or *`
	}
	name := strings.TrimSuffix(match, ".*")
	if strings.Contains(name, "*") {
		return fmt.Sprintf("match %q: the star may only stand alone or after a dot at the end: "+
			"want an exact route, prefix.* or *", match)
	}
	return ""
}

func newTable(plans []plan) table {
	t := table{exact: make(map[string]*plan), prefix: make(map[string]*plan), size: len(plans)}
	for i := range plans {
		p := &plans[i]
		if p.Match == "*" {
			t.rest = p
		} else if name, ok := strings.CutSuffix(p.Match, "*"); ok {
			t.prefix[name] = p
		} else {
			t.exact[p.Match] = p
		}
	}
	return t
}

// find returns nil when nothing matches.
func (t *table) find(route []byte) *plan {
	if p := t.exact[string(route)]; p != nil {
		return p
	}
	if len(t.prefix) > 0 {
		// Prefixes end with a dot, so cutting at the dots from the right meets the
		// longest first without looking at every pattern.
		for end := bytes.LastIndexByte(route, '.'); end >= 0; end = bytes.LastIndexByte(route[:end], '.') {
			if p := t.prefix[string(route[:end+1])]; p != nil {
				return p
			}
		}
	}
	return t.rest
}
