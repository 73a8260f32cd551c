package config

import (
	"fmt"
	"reflect"
)

// decoding lays nodes over the types and notes where each option stands.
type decoding struct {
	origins  map[string]Origin
	hidden   map[string]struct{}
	problems Problems
}

func (d *decoding) refuse(at Origin, path, format string, args ...any) {
	d.problems = append(d.problems, Problem{at, path, fmt.Sprintf(format, args...)})
}

// value reads a node into an option of any type.
func (d *decoding) value(v reflect.Value, n *node, path string) {
	d.origins[path] = n.origin
	if n.kind == broken {
		return
	}
	if n.kind == empty {
		d.refuse(n.origin, path, "has no value: give one (%s), or leave the line out", wanted(v.Type()))
		return
	}
	m, isMap := asMapping(v)
	switch {
	case isMap:
		d.mapping(m, v.Type(), n, path)
	case isScalar(v.Type()):
		d.scalar(v, n, path)
	case v.Kind() == reflect.Slice:
		d.list(v, n, path)
	default:
		d.section(v, n, path)
	}
}

func (d *decoding) scalar(v reflect.Value, n *node, path string) {
	if n.kind == list || n.kind == table {
		d.refuse(n.origin, path, "is %s: want %s", n.kind, wanted(v.Type()))
		return
	}
	if n.hidden {
		d.hidden[path] = struct{}{}
	}
	if n.text == "" {
		d.refuse(n.origin, path, "is empty: give %s, or leave the line out", wanted(v.Type()))
		return
	}
	// A secret may well look like a number; a name that YAML takes for true is a slip.
	if n.kind == truth && v.Kind() == reflect.String {
		d.refuse(n.origin, path, `is true or false: want text; put it in quotes ("%s") if the word is meant`, n.text)
		return
	}
	switch err := setScalar(v, n.text); {
	case err == nil:
	case n.hidden || isSecret(v.Type()): // the error may quote a part of the value
		d.refuse(n.origin, path, "%s: want %s", hiddenValue, wanted(v.Type()))
	default:
		d.refuse(n.origin, path, "%s: %v", quoteForPeople(n.text), err)
	}
}

func (d *decoding) list(v reflect.Value, n *node, path string) {
	if n.kind != list {
		d.refuse(n.origin, path, "is %s: want %s", n.kind, wanted(v.Type()))
		return
	}
	if len(n.items) == 0 {
		d.refuse(n.origin, path, "is an empty list: give an entry, or leave the line out")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i, item := range n.items {
		d.value(v.Index(i), item, index(path, i))
	}
}

func (d *decoding) mapping(m mapping, t reflect.Type, n *node, path string) {
	if n.kind != table {
		d.refuse(n.origin, path, "is %s: want %s", n.kind, wanted(t))
		return
	}
	if len(n.fields) == 0 {
		d.refuse(n.origin, path, "is an empty mapping: give an entry, or leave the line out")
		return
	}
	for _, f := range n.fields {
		if f.key == "" {
			d.refuse(f.origin, path, "has an empty key")
			continue
		}
		v := m.add(f.key)
		if v.Kind() == reflect.Struct {
			setDefaults(v)
		}
		d.value(v, f.value, join(path, f.key))
		// The key is what people look for, and where a section that lacks something is shown.
		if v.Kind() == reflect.Struct {
			d.origins[join(path, f.key)] = f.origin
		}
	}
}

func (d *decoding) section(v reflect.Value, n *node, path string) {
	t := v.Type()
	if n.kind != table {
		if s, ok := v.Interface().(shorthand); ok {
			o, _ := optionByKey(t, s.short())
			d.value(v.Field(o.index), n, join(path, o.key))
			return
		}
		d.refuse(n.origin, path, "is %s: want %s", n.kind, wanted(t))
		return
	}
	for _, f := range n.fields {
		o, ok := optionByKey(t, f.key)
		if !ok {
			d.refuse(f.origin, join(path, f.key), "%s", unknownOption(path, f.key, t))
			continue
		}
		// An alias or a merged value stands elsewhere: the key is where it is used.
		if f.value.kind == empty {
			f.value = &node{origin: f.origin}
		}
		d.value(v.Field(o.index), f.value, join(path, o.key))
		if fv := v.Field(o.index); fv.Kind() == reflect.Struct && !isScalar(fv.Type()) {
			d.origins[join(path, o.key)] = f.origin
		}
	}
}
