package simulation

import (
	"fmt"

	"github.com/walrelay/walrelay/reorder"
)

// Fault is a promise that is broken.
type Fault struct {
	Rule string
	Text string
}

// The rules. Which of them hold depends on the mode; see check.
const (
	Lost    = "an event is lost"
	Doubled = "an event goes out twice"
	Actor   = "the stamps of a replica increase"
	Effect  = "the stamp of an effect is above its cause's"
	Cause   = "an effect goes out after its cause"
	Sorted  = "a partition is in the order of stamps"
	Late    = "nothing is late within true bounds"
	InKey   = "a key keeps the order of its source's commits"
	Counted = "a conflict is counted, and nothing else"
)

const partitions = 4

// Check looks for promises of the mode that an output breaks; at most a few of a rule.
//
//	                    commit              hlc           hlc, within_key: commit
//	nothing lost or doubled (but after a crash, in another run)
//	stamps increase along flows and messages
//	P, M edges      in one source         all           all; else the cause was raised
//	D edges         in one source         no            in one source and key
//	sorted              no            but the late      but the late and the raised
//	late              –                   none, where the bounds are true, nothing was detached and there was room
//	order in a key      yes               no            yes
func Check(w *World, o Output) []Fault {
	c := checker{w: w, o: o, found: map[int]reorder.Found{}, first: map[int]int{}}
	c.complete()
	c.stamps()
	c.causes()
	c.inKey()
	if o.Plan.Mode != Commit {
		c.sorted()
		c.onTime()
	}
	if o.Plan.Mode == Heads {
		c.conflicts()
	}
	return c.faults
}

type checker struct {
	w      *World
	o      Output
	first  map[int]int // index of an event's first appearance
	found  map[int]reorder.Found
	faults []Fault
	many   map[string]int
}

func (c *checker) fault(rule, format string, args ...any) {
	if c.many == nil {
		c.many = map[string]int{}
	}
	if c.many[rule]++; c.many[rule] <= 3 {
		c.faults = append(c.faults, Fault{rule, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) name(id int) string {
	e := &c.w.Events[id]
	return fmt.Sprintf("event %d (source %d, key %d, commit %d, %s)", id, e.Source, e.Key, c.w.Txs[e.Tx].Position, e.Stamp)
}

func (c *checker) complete() {
	last := map[int]int{} // run of the latest appearance
	for i, out := range c.o.Out {
		if run, twice := last[out.Event]; twice && run == out.Run {
			c.fault(Doubled, "%s in run %d", c.name(out.Event), run)
		} else if !twice {
			c.first[out.Event], c.found[out.Event] = i, out.Found
		}
		last[out.Event] = out.Run
	}
	for id := range c.w.Events {
		if _, there := c.first[id]; there != (c.w.Txs[c.w.Events[id].Tx].Written > 0) {
			c.fault(Lost, "%s: went out: %t", c.name(id), there)
		}
	}
}

func (c *checker) stamps() {
	var last [replicas]int // events are numbered in the order of staging
	for r := range last {
		last[r] = -1
	}
	for id := range c.w.Events {
		e := &c.w.Events[id]
		if before := last[e.Replica]; before >= 0 && c.w.Events[before].Stamp >= e.Stamp {
			c.fault(Actor, "replica %d: %s after %s", e.Replica, c.name(id), c.name(before))
		}
		last[e.Replica] = id
	}
	for _, e := range c.w.Edges {
		if e.Kind != Data && c.w.Events[e.Cause].Stamp >= c.w.Events[e.Effect].Stamp {
			c.fault(Effect, "%c: %s has the effect %s", e.Kind, c.name(e.Cause), c.name(e.Effect))
		}
	}
}

// Turned reports whether an effect went out before its cause.
func (c *checker) turned(e Edge) bool { return c.first[e.Effect] < c.first[e.Cause] }

func (c *checker) causes() {
	for _, e := range c.w.Edges {
		cause, effect := &c.w.Events[e.Cause], &c.w.Events[e.Effect]
		if !c.turned(e) || c.found[e.Cause].Has(reorder.Late) {
			continue
		}
		switch c.o.Plan.Mode {
		case Commit:
			if cause.Source != effect.Source {
				continue
			}
		case Stamps:
			if e.Kind == Data {
				continue
			}
		case Heads:
			inKey := cause.Source == effect.Source && cause.Key == effect.Key
			if !inKey && (e.Kind == Data || c.found[e.Cause].Has(reorder.Raised)) {
				continue
			}
		}
		c.fault(Cause, "%c: %s after its effect %s", e.Kind, c.name(e.Cause), c.name(e.Effect))
	}
}

// inKey compares whole runs: also what goes out again after a crash is in order.
func (c *checker) inKey() {
	if c.o.Plan.Mode == Stamps {
		return
	}
	last := map[[3]int]int{}
	for i, out := range c.o.Out {
		e := &c.w.Events[out.Event]
		line := [3]int{out.Run, e.Source, e.Key}
		if before, ok := last[line]; ok {
			b := c.o.Out[before].Event
			p, q := c.w.Txs[c.w.Events[b].Tx].Position, c.w.Txs[e.Tx].Position
			if p > q || p == q && b > out.Event {
				c.fault(InKey, "%s after %s", c.name(out.Event), c.name(b))
			}
		}
		last[line] = i
	}
}

func (c *checker) sorted() {
	last := map[[2]int]int{}
	for i, out := range c.o.Out {
		if out.Found.Has(reorder.Late) || out.Found.Has(reorder.Raised) {
			continue
		}
		partition := [2]int{out.Run, c.w.Events[out.Event].Key % partitions}
		if before, ok := last[partition]; ok {
			if b := c.o.Out[before].Event; c.w.Events[b].Stamp > c.w.Events[out.Event].Stamp {
				c.fault(Sorted, "partition %d: %s after %s", partition[1], c.name(out.Event), c.name(b))
			}
		}
		last[partition] = i
	}
}

func (c *checker) onTime() {
	if c.o.Plan.DetachAfter > 0 || c.o.Plan.Relieve || c.o.Plan.Bounds.Transaction < c.w.Transaction {
		return
	}
	for _, out := range c.o.Out {
		if out.Found.Has(reorder.Late) {
			c.fault(Late, "%s", c.name(out.Event))
		}
	}
}

// conflicts looks at all pairs: an event went out behind one of its key from the other
// source with a greater stamp, and not because it came late.
func (c *checker) conflicts() {
	for i, out := range c.o.Out {
		if out.Found.Has(reorder.Late) {
			continue
		}
		e := &c.w.Events[out.Event]
		overtaken := false
		for _, before := range c.o.Out[:i] {
			f := &c.w.Events[before.Event]
			if before.Run == out.Run && f.Source != e.Source && f.Key == e.Key && f.Stamp > e.Stamp {
				overtaken = true
			}
		}
		if overtaken != out.Found.Has(reorder.Conflict) {
			c.fault(Counted, "%s was overtaken: %t, and is %s", c.name(out.Event), overtaken, out.Found)
		}
	}
}

// Turned counts the edges of a kind whose effect went out before its cause, in one source
// or across both.
func Turned(w *World, o Output, kind Kind, across bool) (turned, all int) {
	c := checker{w: w, o: o, found: map[int]reorder.Found{}, first: map[int]int{}}
	c.complete()
	for _, e := range w.Edges {
		if e.Kind != kind || (w.Events[e.Cause].Source != w.Events[e.Effect].Source) != across {
			continue
		}
		all++
		if c.turned(e) {
			turned++
		}
	}
	return turned, all
}
