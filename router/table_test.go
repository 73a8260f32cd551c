package router

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// choose is the slow, obvious twin of table.find: every pattern is looked at.
func choose(patterns []string, route string) string {
	if slices.Contains(patterns, route) && route != "*" && !strings.HasSuffix(route, ".*") {
		return route
	}
	best := ""
	for _, p := range patterns {
		prefix, ok := strings.CutSuffix(p, "*")
		if ok && strings.HasPrefix(route, prefix) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

func TestChosenRouteIsTheTwins(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[ab.]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		patterns := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
			n := name.Draw(t, "name")
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				return "*"
			case 1, 2:
				return n
			default:
				return n + ".*"
			}
		}), 1, 12, rapid.ID).Draw(t, "patterns")
		plans := make([]plan, len(patterns))
		for i, p := range patterns {
			if why := checkPattern(p); why != "" {
				t.Fatalf("%s", why)
			}
			plans[i].Match = p
		}
		table := newTable(plans)
		route := rapid.StringMatching(`[ab.*]{1,9}`).Draw(t, "route")
		got := ""
		if p := table.find([]byte(route)); p != nil {
			got = p.Match
		}
		if want := choose(patterns, route); got != want {
			t.Fatalf("route %q in %q: got %q, the twin has %q", route, patterns, got, want)
		}
	})
}

func TestLongestPrefixWins(t *testing.T) {
	t.Parallel()
	table := newTable([]plan{{Route: Route{Match: "*"}}, {Route: Route{Match: "a.*"}}, {Route: Route{Match: "a.b.*"}}, {Route: Route{Match: "a.b"}}})
	for route, want := range map[string]string{
		"a": "*", "a.": "a.*", "a.b": "a.b", "a.b.c": "a.b.*", "a.b.c.d": "a.b.*", "a.c.b": "a.*", "b.a.b": "*", "A.b": "*", "a.b.": "a.b.*",
	} {
		if got := table.find([]byte(route)); got.Match != want {
			t.Errorf("%q: got %q, want %q", route, got.Match, want)
		}
	}
}
