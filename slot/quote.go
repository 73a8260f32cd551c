package slot

import (
	"fmt"
	"regexp"
	"strings"
)

// QuoteIdent makes an SQL identifier of any name.
func QuoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// QuoteLiteral makes an SQL string of any text. Every connection of ours has
// standard_conforming_strings on, and the grammar of replication commands knows
// no backslash: a quote is all that needs doubling.
func QuoteLiteral(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }

// QuotePublicationName makes what stands between the quotes of the option
// publication_names '…' in START_REPLICATION. The plugin reads that string as a
// list of identifiers (SplitIdentifierString) and folds what is not quoted, so
// the name is quoted as an identifier and then made fit for a string.
func QuotePublicationName(name string) string {
	return strings.ReplaceAll(QuoteIdent(name), `'`, `''`)
}

// Table is a table's name in two parts, as the catalog has them: without quotes,
// dots and upper case mean nothing special.
type Table struct{ Schema, Name string }

// SQL is the name for statements: always quoted, never looked up in a search path.
func (t Table) SQL() string { return QuoteIdent(t.Schema) + "." + QuoteIdent(t.Name) }

// String is the name for people, quoted only where SQL would need it. ParseTable reads it back.
func (t Table) String() string { return quoteIfNeeded(t.Schema) + "." + quoteIfNeeded(t.Name) }

var plainIdent = regexp.MustCompile(`^[a-z_][a-z0-9_$]*$`)

func quoteIfNeeded(name string) string {
	if plainIdent.MatchString(name) && !reserved[name] {
		return name
	}
	return QuoteIdent(name)
}

// ParseTable reads table or schema.table, each part quoted ("Sales-EU"."Outbox.Order")
// or not; the schema defaults to public. An unquoted part is taken as it is
// written: a configuration file is not SQL, and folding Outbox to outbox would
// only hide the table.
func ParseTable(s string) (Table, error) {
	var parts []string
	rest := s
	for {
		part, after, err := cutIdent(rest)
		if err != nil {
			return Table{}, fmt.Errorf("table name %s: %w", s, err)
		}
		parts = append(parts, part)
		if after == "" {
			break
		}
		rest = after[1:]
	}
	switch len(parts) {
	case 1:
		return Table{Schema: "public", Name: parts[0]}, nil
	case 2:
		return Table{Schema: parts[0], Name: parts[1]}, nil
	}
	return Table{}, fmt.Errorf("table name %s has %d parts: want table or schema.table, with quotes around a part that holds a dot", s, len(parts))
}

// cutIdent reads one part; after is empty or begins with a dot.
func cutIdent(s string) (part, after string, err error) {
	if !strings.HasPrefix(s, `"`) {
		n := strings.IndexByte(s, '.')
		if n < 0 {
			n = len(s)
		}
		part, after = s[:n], s[n:]
		if strings.Contains(part, `"`) {
			return "", "", fmt.Errorf("a quote stands in the middle of %s", part)
		}
	} else {
		var b strings.Builder
		i := 1
		for ; ; i++ {
			if i == len(s) {
				return "", "", fmt.Errorf("the quote is not closed")
			}
			if s[i] != '"' {
				b.WriteByte(s[i])
				continue
			}
			if i+1 < len(s) && s[i+1] == '"' {
				b.WriteByte('"')
				i++
				continue
			}
			break
		}
		part, after = b.String(), s[i+1:]
		if after != "" && after[0] != '.' {
			return "", "", fmt.Errorf("after the closing quote comes %s instead of a dot", after)
		}
	}
	if part == "" {
		return "", "", fmt.Errorf("a part is empty")
	}
	return part, after, nil
}

// reserved holds the key words that cannot stand alone as a table's name:
// reserved and type_func_name key words of Postgres 18 (src/include/parser/kwlist.h).
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for word := range strings.FieldsSeq(`all analyse analyze and any array as asc asymmetric authorization binary both
		case cast check collate collation column concurrently constraint create cross current_catalog current_date
		current_role current_schema current_time current_timestamp current_user default deferrable desc distinct do
		else end except false fetch for foreign freeze from full grant group having ilike in initially inner intersect
		into is isnull join lateral leading left like limit localtime localtimestamp natural not notnull null offset
		on only or order outer overlaps placing primary references returning right select session_user similar some
		symmetric system_user table tablesample then to trailing true union unique user using variadic verbose when
		where window with`) {
		m[word] = true
	}
	return m
}()
