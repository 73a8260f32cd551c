package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// reader turns the syntax tree of a file into nodes: aliases and merge keys are
// resolved, values expanded, keys that stand twice refused.
type reader struct {
	file     string
	expander *expander
	anchors  map[string]*node
	problems Problems
	depth    int
}

// deepest is far below any depth that an option has. It bounds the length of
// paths, which grow with the depth.
const deepest = 32

// read returns the root of the file; an empty mapping when there is nothing in it.
func (r *reader) read(data []byte) *node {
	root := &node{kind: table, origin: Origin{File: r.file, Line: 1, Column: 1}}
	tree, err := parseYAML(data)
	if err != nil {
		// The library's full text shows the lines around the fault, and with them
		// whatever secret stands there; its sentence and position do not.
		at, what := Origin{File: r.file}, "cannot be read as YAML"
		if e := yaml.Error(nil); errors.As(err, &e) {
			at, what = r.at(e.GetToken()), "is not YAML: "+e.GetMessage()
		}
		if lineHolds(data, at.Line, "${") {
			what += "; inside { } and [ ] a ${…} needs quotes around it"
		}
		r.refuse(at, "", "%s", what)
		return nil
	}
	bodies := 0
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		if _, ok := doc.Body.(*ast.CommentGroupNode); ok {
			continue
		}
		if bodies++; bodies > 1 {
			r.refuse(r.at(doc.Body.GetToken()), "", "a second document begins here: want one")
			break
		}
		root = r.node(doc.Body, "")
	}
	switch root.kind {
	case empty:
		root.kind = table
	case broken:
	case table:
		if len(root.fields) > 0 {
			root.origin = root.fields[0].origin
		}
	default:
		r.refuse(root.origin, "", "the file holds %s: want a mapping such as name: shop", root.kind)
	}
	return root
}

func lineHolds(data []byte, line int, s string) bool {
	for i := 1; i < line; i++ {
		_, after, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return false
		}
		data = after
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return line > 0 && bytes.Contains(first, []byte(s))
}

// parseYAML guards against the parser's panics on malformed input: a broken file
// is a broken file, not a crash.
func parseYAML(data []byte) (tree *ast.File, err error) {
	defer func() {
		if recover() != nil {
			tree, err = nil, errors.New("the parser gave up")
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

func (r *reader) refuse(at Origin, path, format string, args ...any) {
	r.problems = append(r.problems, Problem{at, path, fmt.Sprintf(format, args...)})
}

func (r *reader) at(t *token.Token) Origin {
	o := Origin{File: r.file}
	if t != nil && t.Position != nil {
		o.Line, o.Column = max(t.Position.Line, 1), max(t.Position.Column, 1)
	}
	return o
}

func (r *reader) node(n ast.Node, path string) *node {
	if n == nil {
		return &node{origin: Origin{File: r.file}}
	}
	out := &node{origin: r.at(n.GetToken())}
	if r.depth++; r.depth > deepest {
		out.kind = broken
		if r.depth == deepest+1 {
			r.refuse(out.origin, path, "is nested more than %d levels deep: no option is", deepest)
		}
		r.depth--
		return out
	}
	defer func() { r.depth-- }()
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		r.scalar(out, text, n.Value, path)
	case *ast.LiteralNode:
		r.scalar(out, text, n.Value.Value, path)
	case *ast.BoolNode:
		r.scalar(out, truth, n.Token.Value, path)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		r.scalar(out, number, strings.TrimSpace(n.GetToken().Value), path)
	case *ast.SequenceNode:
		out.kind = list
		for i, item := range n.Values {
			out.items = append(out.items, r.item(item, index(path, i)))
		}
	case *ast.MappingNode:
		r.mapping(out, n.Values, path)
	case *ast.MappingValueNode:
		r.mapping(out, []*ast.MappingValueNode{n}, path)
	case *ast.AnchorNode:
		out = r.node(n.Value, path)
		r.anchors[n.Name.GetToken().Value] = out
	case *ast.AliasNode:
		return r.alias(n, out, path)
	default:
		out.kind = broken
		r.refuse(out.origin, path, "YAML of the kind %s has no meaning here", n.Type())
	}
	return out
}

func (r *reader) scalar(out *node, k kind, raw, path string) {
	out.kind, out.text = k, raw
	if k != text {
		return
	}
	var faults []string
	out.text, out.hidden, faults = r.expander.expand(raw)
	for _, f := range faults {
		out.kind = broken
		r.refuse(out.origin, path, "%s", f)
	}
}

// alias shares the node of its anchor, so that aliases of aliases take no room.
func (r *reader) alias(n *ast.AliasNode, out *node, path string) *node {
	name := n.Value.GetToken().Value
	if target, ok := r.anchors[name]; ok {
		return target
	}
	out.kind = broken
	r.refuse(out.origin, path, "the alias *%s stands before its anchor, or there is none", name)
	return out
}

func (r *reader) mapping(out *node, values []*ast.MappingValueNode, path string) {
	out.kind = table
	places := map[string]int{}
	for _, v := range values {
		at := r.at(v.Key.GetToken())
		if v.Key.IsMergeKey() {
			r.merge(out, r.node(v.Value, path), places, at, path)
			continue
		}
		key, ok := keyText(v.Key)
		if !ok {
			r.refuse(at, path, "a key that is not a word has no meaning here")
			continue
		}
		value := r.node(v.Value, join(path, key))
		if value.origin.Line == 0 {
			value.origin = at
		}
		entry := field{key: key, origin: at, value: value}
		i, known := places[key]
		switch {
		case known && !out.fields[i].merged:
			r.refuse(at, join(path, key), "stands twice, first in line %d: keep one", out.fields[i].origin.Line)
		case known:
			out.fields[i] = entry
		default:
			places[key] = len(out.fields)
			out.fields = append(out.fields, entry)
		}
	}
}

// merge adds the keys of another mapping under those that stand in this one.
func (r *reader) merge(out, other *node, places map[string]int, at Origin, path string) {
	others := []*node{other}
	if other.kind == list {
		others = other.items
	}
	for _, o := range others {
		if o.kind == broken {
			continue
		}
		if o.kind != table {
			r.refuse(at, path, "<< merges %s: want a mapping, by an alias such as *base", o.kind)
			continue
		}
		for _, f := range o.fields {
			if _, known := places[f.key]; !known {
				f.merged = true
				places[f.key] = len(out.fields)
				out.fields = append(out.fields, f)
			}
		}
	}
}

func keyText(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.MappingKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return "", false
	default:
		return strings.TrimSpace(k.GetToken().Value), true
	}
}
