package config

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const longestQuote = 60

// quoteForPeople quotes a value that is no secret by its place. A connection
// string that strayed there is masked all the same.
func quoteForPeople(s string) string {
	if strings.Contains(s, "://") && strings.Contains(s, "@") || strings.Contains(strings.ToLower(s), "passw") {
		s = DSN{s}.String()
	}
	if len(s) > longestQuote {
		cut := longestQuote
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return strconv.Quote(s)
}

// join makes the path of a key; a key that could be mistaken for two is quoted.
func join(path string, keys ...string) string {
	for _, key := range keys {
		if !plainKey(key) {
			key = quoteForPeople(key)
		}
		if path != "" {
			path += "."
		}
		path += key
	}
	return path
}

func plainKey(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-<>*") == ""
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
