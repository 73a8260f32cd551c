package config

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// item is an entry of a list. In {brokers: [localhost:9092]} the library takes
// the entry for a mapping of localhost to 9092, though YAML wants a blank after
// the colon for that; such an entry is joined again.
func (r *reader) item(n ast.Node, path string) *node {
	var pair *ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) == 1 && (n.Start == nil || n.Start.Type != token.MappingStartType) {
			pair = n.Values[0]
		}
	case *ast.MappingValueNode:
		pair = n
	}
	if pair == nil || pair.Value == nil {
		return r.node(n, path)
	}
	key, value := pair.Key.GetToken(), pair.Value.GetToken()
	if !plain(key) || !plain(value) || key.Position.Line != value.Position.Line {
		return r.node(n, path)
	}
	name := strings.TrimSpace(key.Value)
	if key.Position.Column+utf8.RuneCountInString(name)+1 != value.Position.Column {
		return r.node(n, path)
	}
	out := &node{origin: r.at(key)}
	r.scalar(out, text, name+":"+strings.TrimSpace(value.Value), path)
	return out
}

// plain reports whether the token is a scalar without quotes.
func plain(t *token.Token) bool {
	if t == nil || t.Position == nil {
		return false
	}
	switch t.Type {
	case token.StringType, token.IntegerType, token.FloatType, token.BoolType, token.NullType,
		token.HexIntegerType, token.OctetIntegerType, token.BinaryIntegerType, token.InfinityType, token.NanType:
		return true
	default:
		return false
	}
}
