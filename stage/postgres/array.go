package postgres

import "strings"

// array writes a Postgres array literal, which every driver and protocol passes on
// as a string:
//
//	{"a","with \"quotes\" and \\",NULL}
//
// So the statement is the same for any number of rows, and needs one parameter for
// each column.
type array struct{ b strings.Builder }

func (a *array) next() {
	if a.b.Len() == 0 {
		a.b.WriteByte('{')
	} else {
		a.b.WriteByte(',')
	}
}

func (a *array) null() { a.next(); a.b.WriteString("NULL") }

func (a *array) add(s string) {
	a.next()
	a.b.WriteByte('"')
	for {
		i := strings.IndexAny(s, `"\`)
		if i < 0 {
			break
		}
		a.b.WriteString(s[:i])
		a.b.WriteByte('\\')
		a.b.WriteByte(s[i])
		s = s[i+1:]
	}
	a.b.WriteString(s)
	a.b.WriteByte('"')
}

// some adds s, or NULL where it is empty.
func (a *array) some(s string) {
	if s == "" {
		a.null()
	} else {
		a.add(s)
	}
}

func (a *array) String() string {
	if a.b.Len() == 0 {
		return "{}"
	}
	return a.b.String() + "}"
}
