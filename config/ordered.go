package config

import "reflect"

// Map is a mapping that keeps the order of the file.
type Map[V any] []Entry[V]

// Entry is one key of a [Map] with its value.
type Entry[V any] struct {
	Key   string
	Value V
}

// Get finds the value of a key.
func (m Map[V]) Get(key string) (V, bool) {
	for _, e := range m {
		if e.Key == key {
			return e.Value, true
		}
	}
	var none V
	return none, false
}

// mapping is how the reflecting code sees a [Map] of any value.
type mapping interface {
	add(key string) reflect.Value // the new, addressable value
	each(func(key string, value reflect.Value))
	element() reflect.Type
}

func (m *Map[V]) add(key string) reflect.Value {
	*m = append(*m, Entry[V]{Key: key})
	return reflect.ValueOf(&(*m)[len(*m)-1].Value).Elem()
}

func (m *Map[V]) each(visit func(string, reflect.Value)) {
	for i := range *m {
		visit((*m)[i].Key, reflect.ValueOf(&(*m)[i].Value).Elem())
	}
}

func (m *Map[V]) element() reflect.Type { return reflect.TypeFor[V]() }

func asMapping(v reflect.Value) (mapping, bool) {
	m, ok := v.Addr().Interface().(mapping)
	return m, ok
}
