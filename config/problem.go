package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// AnchorConfiguration is the section of docs/runbook.md on a refused configuration.
const AnchorConfiguration event.Anchor = "configuration"

// Origin is where a value stands: in a file, or in the variable or flag named.
type Origin struct {
	File         string
	Line, Column int // from 1; zero: the whole file
	Name         string
}

func (o Origin) String() string {
	switch {
	case o.Name != "":
		return o.Name
	case o.Line == 0:
		return o.File
	default:
		return fmt.Sprintf("%s:%d:%d", o.File, o.Line, o.Column)
	}
}

// Problem is one thing that is wrong with the configuration.
type Problem struct {
	Origin Origin
	Path   string // sources.orders.postgres.tabels; empty: the file as a whole
	What   string // a sentence
}

func (p Problem) String() string {
	var b strings.Builder
	for _, part := range []string{p.Origin.String(), p.Path} {
		if part != "" {
			b.WriteString(part + ": ")
		}
	}
	return b.String() + p.What
}

// Problems is everything that is wrong, in the order of the file. It is the
// cause in the error of [Load] and [Config.Validate].
type Problems []Problem

func (p Problems) Error() string {
	if len(p) == 1 {
		return p[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems\n", len(p))
	for _, one := range p {
		b.WriteString("  " + one.String() + "\n")
	}
	return b.String()
}

// Warning is something that does not stop the relay but is probably not meant.
type Warning struct {
	Name string // the variable or path
	What string
}

func (w Warning) String() string { return w.Name + ": " + w.What }

// refusal makes the error out of the problems; nil when there are none.
func refusal(found Problems) error {
	if len(found) == 0 {
		return nil
	}
	slices.SortStableFunc(found, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Origin.Name, b.Origin.Name), cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Origin.Column, b.Origin.Column))
	})
	return &event.Error{
		Class: event.Halt, Fault: event.FaultUsage, Anchor: AnchorConfiguration,
		What: "the configuration cannot be used", Cause: found,
		Remedy: "correct what is named here, then let `walrelay config` print the result; every option is in docs/config.md",
	}
}
