package postgres

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// text is a parameter in text form.
func text(s string) []byte { return []byte(s) }

// number is a parameter for any integer type.
func number[T ~int | ~int64](n T) []byte { return strconv.AppendInt(nil, int64(n), 10) }

// interval is a parameter for pg_catalog.interval.
func interval(d time.Duration) []byte {
	return append(strconv.AppendInt(nil, d.Microseconds(), 10), " microseconds"...)
}

// array is a parameter for an array of any type, made of the elements' text forms
// (array_in: every element quoted, with quote and backslash escaped).
func array(elements []string) []byte {
	size := 2
	for _, e := range elements {
		size += len(e) + 3
	}
	b := append(make([]byte, 0, size), '{')
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendElement(b, e)
	}
	return append(b, '}')
}

// optionalArray is array with NULL for empty elements.
func optionalArray(elements []string) []byte {
	b := []byte{'{'}
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		if e == "" {
			b = append(b, "NULL"...)
		} else {
			b = appendElement(b, e)
		}
	}
	return append(b, '}')
}

// numbers is a parameter for an array of integers.
func numbers(elements []int) []byte {
	b := []byte{'{'}
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(e), 10)
	}
	return append(b, '}')
}

// eachNumber calls f for each number of an array of integers; NULL has none.
func eachNumber(array []byte, f func(n int)) error {
	if len(array) <= len("{}") {
		return nil
	}
	for e := range bytes.SplitSeq(array[1:len(array)-1], []byte{','}) {
		n, err := strconv.Atoi(string(e))
		if err != nil {
			return err
		}
		f(n)
	}
	return nil
}

func appendElement(b []byte, e string) []byte {
	b = append(b, '"')
	if !strings.ContainsAny(e, `"\`) {
		b = append(b, e...)
		return append(b, '"')
	}
	for i := range len(e) {
		if e[i] == '"' || e[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, e[i])
	}
	return append(b, '"')
}

// quote makes an SQL identifier of any name.
func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func boolean(b bool) []byte { return strconv.AppendBool(nil, b) }
