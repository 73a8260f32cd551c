package config

import (
	"reflect"
	"slices"
	"strings"
)

// Override is a value from a flag; it wins over everything else.
type Override struct {
	Flag  string // as people type it: --log-level
	Path  string // log.level
	Value string
}

// ConfigVariable is the variable that names the file.
const ConfigVariable = Prefix + "CONFIG"

// fromEnvironment lays the WALRELAY_ variables over the configuration.
func (d *decoding) fromEnvironment(c *Config, env Lookup) {
	for _, o := range allOptions() {
		if o.Variable == "" {
			continue
		}
		if value, ok := env(o.Variable); ok {
			d.override(c, o.Path, value, Origin{Name: o.Variable})
		}
	}
}

func (d *decoding) fromFlags(c *Config, flags []Override) {
	for _, f := range flags {
		at := Origin{Name: f.Flag}
		i := slices.IndexFunc(allOptions(), func(o Option) bool { return o.Path == f.Path && o.Variable != "" })
		if i < 0 {
			what := "is no option that a flag can set"
			if near, ok := nearest(f.Path, overridable(func(o Option) string { return o.Path })); ok {
				what += ": did you mean " + near + "?"
			}
			d.refuse(at, f.Path, "%s", what)
			continue
		}
		d.override(c, f.Path, f.Value, at)
	}
}

// override sets one option by its path. Lists are written with commas.
func (d *decoding) override(c *Config, path, value string, at Origin) {
	v := reflect.ValueOf(c).Elem()
	for key := range strings.SplitSeq(path, ".") {
		o, ok := optionByKey(v.Type(), key)
		if !ok {
			d.refuse(at, path, "is no option")
			return
		}
		v = v.Field(o.index)
	}
	for known := range d.hidden {
		if known == path || strings.HasPrefix(known, path+"[") {
			delete(d.hidden, known)
		}
	}
	n := &node{kind: text, text: value, origin: at}
	if v.Kind() == reflect.Slice && value != "" {
		list := &node{kind: list, origin: at}
		for item := range strings.SplitSeq(value, ",") {
			list.items = append(list.items, &node{kind: text, text: strings.TrimSpace(item), origin: at})
		}
		n = list
	}
	d.value(v, n, path)
}

func overridable(name func(Option) string) (names []string) {
	for _, o := range allOptions() {
		if o.Variable != "" {
			names = append(names, name(o))
		}
	}
	return names
}

// strangers warns of variables with our prefix that nothing reads. Variables of
// the test suite, and those that Kubernetes and Docker invent for a service
// called walrelay, are not meant for us.
func strangers(environ []string) (found []Warning) {
	known := append(overridable(func(o Option) string { return o.Variable }), ConfigVariable)
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		rest, ours := strings.CutPrefix(name, Prefix)
		if !ours || slices.Contains(known, name) || rest == "CI" {
			continue
		}
		if slices.ContainsFunc([]string{"TEST_", "SERVICE_", "PORT_"}, func(p string) bool { return strings.HasPrefix(rest+"_", p) }) {
			continue
		}
		what := "nothing reads this environment variable"
		if near, ok := nearest(name, known); ok {
			what += ": did you mean " + near + "?"
		}
		found = append(found, Warning{name, what})
	}
	slices.SortFunc(found, func(a, b Warning) int { return strings.Compare(a.Name, b.Name) })
	return found
}
