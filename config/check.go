package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// checking looks at a filled configuration and collects what is wrong with it.
type checking struct {
	c        *Config
	problems Problems
	// refused holds the paths with a problem already: one slip, one sentence.
	refused map[string]bool
}

func (k *checking) refuse(path, format string, args ...any) {
	if k.spoiled(path) {
		return
	}
	k.refused[path] = true
	k.problems = append(k.problems, Problem{k.c.origin(path), path, fmt.Sprintf(format, args...)})
}

// spoiled reports whether the path, or a section around it, is refused already.
func (k *checking) spoiled(path string) bool {
	for path != "" {
		if k.refused[path] {
			return true
		}
		path = parent(path)
	}
	return false
}

// origin is where an option stands, or else where the nearest section around it does.
func (c *Config) origin(path string) Origin {
	for {
		if at, ok := c.origins[path]; ok || path == "" {
			return at
		}
		path = parent(path)
	}
}

func parent(path string) string {
	if strings.HasSuffix(path, `"`) { // a quoted key, perhaps with dots in it
		if i := strings.LastIndex(path[:len(path)-1], `"`); i >= 0 {
			return strings.TrimSuffix(path[:i], ".")
		}
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// given reports whether the option was written somewhere, be it with its zero value.
func (c *Config) given(path string) bool {
	_, ok := c.origins[path]
	return ok
}

// section applies the rules in the tags.
func (k *checking) section(v reflect.Value, path string) {
	for _, o := range optionsOf(v.Type()) {
		k.option(v.Field(o.index), &o, join(path, o.key))
	}
}

func (k *checking) option(v reflect.Value, o *option, path string) {
	m, isMap := asMapping(v)
	switch {
	case o.oneof && v.IsZero(): // another one is
	case o.required && v.IsZero():
		k.refuse(path, "is missing: it has no default")
	case isMap:
		m.each(func(key string, value reflect.Value) {
			if value.Kind() == reflect.Struct {
				k.section(value, join(path, key))
			}
		})
	case v.Kind() == reflect.Slice:
		k.list(v, path)
	case !isScalar(v.Type()):
		k.section(v, path)
	default:
		k.scalar(v, o, path)
	}
}

func (k *checking) list(v reflect.Value, path string) {
	first := map[any]int{}
	for i := range v.Len() {
		item := v.Index(i).Interface()
		if at, ok := first[item]; ok {
			k.refuse(index(path, i), "stands twice in the list, at places %d and %d", at+1, i+1)
		}
		first[item] = i
	}
}

func (k *checking) scalar(v reflect.Value, o *option, path string) {
	shown := showScalar(v)
	if k.c.isHidden(path) {
		shown = masked
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		k.positive(int64(x), shown, o, path)
	case Size:
		k.positive(int64(x), shown, o, path)
	case int:
		if o.bounded() && (x < o.min || o.max != 0 && x > o.max) && (x != 0 || o.def != "" || k.c.given(path)) {
			k.refuse(path, "is %s: want %s", shown, o.limits())
		}
	case string:
		if len(o.enum) > 0 && (x != "" || o.def != "") {
			k.word(x, quoteForPeople(shown), o, path)
		}
	}
}

// positive refuses what is below zero, and zero unless it has a meaning, or
// stands for "not given".
func (k *checking) positive(x int64, shown string, o *option, path string) {
	switch {
	case x < 0 && o.zero:
		k.refuse(path, "is %s: want zero or more", shown)
	case x < 0, x == 0 && !o.zero && (o.def != "" || k.c.given(path)):
		k.refuse(path, "is %s: want more than zero", shown)
	}
}

func (k *checking) word(word, shown string, o *option, path string) {
	if slices.Contains(o.enum, word) {
		return
	}
	if near, ok := nearest(word, o.enum); ok {
		k.refuse(path, "%s is unknown: did you mean %s? (want %s)", shown, near, strings.Join(o.enum, ", "))
		return
	}
	k.refuse(path, "%s is unknown: want %s", shown, strings.Join(o.enum, ", "))
}

func (o *option) limits() string {
	if o.max == 0 {
		return fmt.Sprintf("%d or more", o.min)
	}
	return fmt.Sprintf("%d to %d", o.min, o.max)
}
