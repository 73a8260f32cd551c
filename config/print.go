package config

import (
	"encoding/json"
	"io"
	"reflect"
	"regexp"
	"strings"
)

// Print writes the effective configuration as YAML, with secrets masked and
// without options that have no value. Apart from the masks it can be loaded again.
func (c *Config) Print(w io.Writer) error {
	p := printer{c: c}
	p.section(reflect.ValueOf(c).Elem(), "", "")
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (c *Config) isHidden(path string) bool {
	_, ok := c.hidden[path]
	return ok
}

type printer struct {
	c *Config
	b strings.Builder
}

func (p *printer) section(v reflect.Value, path, indent string) {
	for _, o := range optionsOf(v.Type()) {
		if o.oneof && v.Field(o.index).IsZero() {
			continue
		}
		p.option(v.Field(o.index), join(path, o.key), o.key, o.def, indent)
	}
}

func (p *printer) option(v reflect.Value, path, key, def, indent string) {
	if v.IsZero() && def == "" || isEmptySection(v) {
		return
	}
	p.b.WriteString(indent + yamlText(key) + ":")
	m, isMap := asMapping(v)
	deeper := indent + "  "
	switch {
	case isMap:
		p.b.WriteByte('\n')
		m.each(func(k string, value reflect.Value) {
			p.entry(value, join(path, k), k, deeper)
		})
	case isScalar(v.Type()):
		p.b.WriteString(" " + p.scalar(v, path) + "\n")
	case v.Kind() == reflect.Slice:
		p.b.WriteByte('\n')
		for i := range v.Len() {
			p.b.WriteString(deeper + "- " + p.scalar(v.Index(i), index(path, i)) + "\n")
		}
	default:
		p.b.WriteByte('\n')
		p.section(v, path, deeper)
	}
}

// entry is a key of a map; a section in it always has options with defaults, so
// that it never prints as nothing.
func (p *printer) entry(v reflect.Value, path, key, indent string) {
	p.b.WriteString(indent + yamlText(key) + ":")
	if v.Kind() == reflect.Struct {
		p.b.WriteByte('\n')
		p.section(v, path, indent+"  ")
		return
	}
	p.b.WriteString(" " + p.scalar(v, path) + "\n")
}

// isEmptySection reports whether nothing of a section would print.
func isEmptySection(v reflect.Value) bool {
	if v.Kind() != reflect.Struct || isScalar(v.Type()) {
		return false
	}
	for _, o := range optionsOf(v.Type()) {
		f := v.Field(o.index)
		if o.def != "" && isScalar(f.Type()) || !f.IsZero() && !isEmptySection(f) {
			return false
		}
	}
	return true
}

func (p *printer) scalar(v reflect.Value, path string) string {
	if p.c.isHidden(path) {
		return yamlText(masked)
	}
	shown := showScalar(v)
	if v.Kind() == reflect.String || v.Kind() == reflect.Struct {
		return yamlText(shown)
	}
	return shown
}

// unquoted is what needs no quotes in YAML whatever stands around it.
var unquoted = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)

// yamlText is a string as a YAML scalar. A JSON string is one, and the loader's
// own ${ is escaped.
func yamlText(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
	default:
		if unquoted.MatchString(s) {
			return s
		}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(strings.ReplaceAll(s, "${", "$${")) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
