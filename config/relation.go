package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Relation is the name of a table, unquoted: what pg_namespace and pg_class hold.
type Relation struct {
	Schema string
	Name   string
	// Folded says that SQL's folding of unquoted names changed a letter.
	Folded bool
}

// Postgres cuts longer identifiers off (NAMEDATALEN - 1).
const maxIdentifier = 63

// ParseRelation reads a table name by the rules of SQL: parts are separated by a
// dot, a part in double quotes is taken as it is ("" is a quote in it), another
// is folded to lower case. One part alone is in schema public.
func ParseRelation(text string) (Relation, error) {
	var parts []string
	var r Relation
	rest := text
	for {
		part, folded, after, err := sqlIdentifier(rest)
		if err != nil {
			return Relation{}, err
		}
		parts = append(parts, part)
		r.Folded = r.Folded || folded
		if after == "" {
			break
		}
		if after[0] != '.' {
			return Relation{}, fmt.Errorf("%q follows the name %q: want a dot or nothing", after, part)
		}
		rest = after[1:]
	}
	switch len(parts) {
	case 1:
		r.Schema, r.Name = "public", parts[0]
	case 2:
		r.Schema, r.Name = parts[0], parts[1]
	default:
		return Relation{}, fmt.Errorf("%d parts: want schema.table; a dot inside a name needs double quotes around the name", len(parts))
	}
	return r, nil
}

// sqlIdentifier takes one identifier off the front of s.
func sqlIdentifier(s string) (name string, folded bool, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		name, rest, err = quotedIdentifier(s[1:])
	} else {
		end := strings.IndexFunc(s, func(r rune) bool { return !identifierRune(r) })
		if end < 0 {
			end = len(s)
		}
		raw := s[:end]
		rest = s[end:]
		switch {
		case raw == "":
			return "", false, "", errors.New("a name is missing: want schema.table")
		case raw[0] >= '0' && raw[0] <= '9' || raw[0] == '$':
			return "", false, "", fmt.Errorf(`the name %s starts with a digit or $: write it in double quotes`, raw)
		case rest != "" && rest[0] != '.' && rest[0] != '"':
			r, _ := utf8.DecodeRuneInString(rest)
			return "", false, "", fmt.Errorf("%q cannot stand in an unquoted name: write the name in double quotes", r)
		}
		name = foldASCII(raw)
		folded = name != raw
	}
	if err == nil && len(name) > maxIdentifier {
		err = fmt.Errorf("a name of %d bytes: Postgres keeps %d", len(name), maxIdentifier)
	}
	return name, folded, rest, err
}

func quotedIdentifier(s string) (name, rest string, err error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			return "", "", errors.New("a double quote is not closed")
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if !strings.HasPrefix(s, `"`) {
			break
		}
		b.WriteByte('"')
		s = s[1:]
	}
	if b.Len() == 0 {
		return "", "", errors.New("an empty name in double quotes")
	}
	if strings.IndexByte(b.String(), 0) >= 0 {
		return "", "", errors.New("a NUL byte in a name")
	}
	return b.String(), s, nil
}

func identifierRune(r rune) bool {
	return r == '_' || r == '$' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		r > unicode.MaxASCII && r != utf8.RuneError && !unicode.IsSpace(r)
}

// foldASCII folds as a UTF-8 server does: other letters stay as they are.
func foldASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// String is the name as SQL reads it, always quoted.
func (r Relation) String() string { return quoteIdentifier(r.Schema) + "." + quoteIdentifier(r.Name) }

func quoteIdentifier(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func (r *Relation) parse(text string) (err error) {
	*r, err = ParseRelation(text)
	return err
}

func (Relation) want() string { return "a table such as public.outbox" }
