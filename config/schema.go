package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// shorthand is a section that may be written as the value of one of its options.
type shorthand interface{ short() string }

// option is a field of a section, as its tags describe it.
type option struct {
	index    int
	key      string
	def      string
	required bool
	oneof    bool // of several sections only one is there
	zero     bool // zero is a value like others
	enum     []string
	min, max int    // both zero: no limits
	keyName  string // of a map: what a key is called in paths
}

// bounded reports whether the range is limited.
func (o *option) bounded() bool { return o.min != 0 || o.max != 0 }

var sections sync.Map // reflect.Type → []option: types do not change

// optionsOf lists the options of a section's type in the order of its fields.
func optionsOf(t reflect.Type) []option {
	if known, ok := sections.Load(t); ok {
		return known.([]option)
	}
	var out []option
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		key := tag.Get("yaml")
		if key == "" {
			continue
		}
		o := option{
			index: i, key: key, def: tag.Get("default"), required: tag.Get("required") == "true", zero: tag.Get("zero") == "true",
			oneof: tag.Get("oneof") == "true",
			enum:  words(tag.Get("enum")), keyName: tag.Get("key"),
		}
		o.min, _ = strconv.Atoi(tag.Get("min"))
		o.max, _ = strconv.Atoi(tag.Get("max"))
		out = append(out, o)
	}
	sections.Store(t, out)
	return out
}

func words(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, "|")
}

func optionByKey(t reflect.Type, key string) (option, bool) {
	list := optionsOf(t)
	i := slices.IndexFunc(list, func(o option) bool { return o.key == key })
	if i < 0 {
		return option{}, false
	}
	return list[i], true
}

// setDefaults gives every option of a section its default. A default that does
// not read is a mistake in the tag; a test reads them all.
func setDefaults(v reflect.Value) {
	for _, o := range optionsOf(v.Type()) {
		f := v.Field(o.index)
		switch {
		case f.Kind() == reflect.Struct && !isScalar(f.Type()):
			setDefaults(f)
		case o.def != "":
			_ = setScalar(f, o.def)
		}
	}
}

// Option describes one option for documentation, suggestions and overrides.
type Option struct {
	Path     string // with <source> and the like for keys of your choice
	Type     string // what it takes
	Default  string // as one would write it; empty: none
	Required bool
	Words    []string // the values allowed, when they are words
	Variable string   // environment variable that overrides it; empty: none

	kind  reflect.Type
	owner reflect.Type // the section's type and its field, for the docs
	field string
}

// Prefix begins the name of every environment variable that walrelay reads of its own accord.
const Prefix = "WALRELAY_"

var allOptions = sync.OnceValue(func() []Option { return describe(nil, "", reflect.TypeFor[Config]()) })

// Options lists every option there is, in the order of the types.
func Options() []Option { return slices.Clone(allOptions()) }

func describe(out []Option, path string, t reflect.Type) []Option {
	for _, o := range optionsOf(t) {
		f := t.Field(o.index)
		d := Option{
			Path: join(path, o.key), Type: wanted(f.Type), Default: o.def, Required: o.required, Words: o.enum,
			kind: f.Type, owner: t, field: f.Name,
		}
		m, isMap := reflect.New(f.Type).Interface().(mapping)
		switch {
		case isMap && isScalar(m.element()):
			d.Path = join(d.Path, o.keyName)
			d.Type = wanted(m.element())
			out = append(out, d)
		case isMap:
			out = describe(append(out, d), join(d.Path, o.keyName), m.element())
		case f.Type.Kind() == reflect.Struct && !isScalar(f.Type):
			out = describe(append(out, d), d.Path, f.Type)
		default:
			if !strings.Contains(d.Path, "<") {
				d.Variable = variableFor(d.Path)
			}
			out = append(out, d)
		}
	}
	return out
}

// section reports whether the option only holds other options.
func (o *Option) section() bool {
	m, isMap := reflect.New(o.kind).Interface().(mapping)
	return isMap && !isScalar(m.element()) || o.kind.Kind() == reflect.Struct && !isScalar(o.kind)
}

func variableFor(path string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}
