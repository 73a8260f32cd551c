package config

import (
	"fmt"
	"reflect"
	"strings"
)

// explained are keys that people will look for here and that do not exist, by
// path with * for a name of the user's choice.
var explained = map[string]string{
	"kafka.acks":                     "is fixed: acks=all always holds, since nothing else keeps what was committed",
	"kafka.idempotent":               "is fixed: the producer is always idempotent",
	"kafka.max_in_flight":            "is fixed: walrelay keeps the order of each key itself",
	"kafka.tls.insecure_skip_verify": "is not possible: the broker's certificate is always verified; name its authority with ca_file",
	"order":                          "is not in this version yet: events are published in commit order",
	"delivery":                       "is not in this version yet: delivery is at least once",
	"sources.*.publish_when":         "is not in this version yet: an event is published as soon as the log has it",
	"sources.*.postgres.claim":       "is called poll.claim, and stands beside postgres",
	"sources.*.postgres.row_filter":  "is called allow_row_filter",
}

// unknownOption says why a key is refused and what was probably meant.
func unknownOption(path, key string, t reflect.Type) string {
	if why, ok := explained[pattern(join(path, key))]; ok {
		return why
	}
	var names []string
	for _, o := range optionsOf(t) {
		names = append(names, o.key)
	}
	if near, ok := nearest(key, names); ok {
		return fmt.Sprintf("is no option: did you mean %s?", near)
	}
	if where := elsewhere(key); where != "" {
		return fmt.Sprintf("is no option here: did you mean %s?", where)
	}
	return "is no option; here are " + strings.Join(names, ", ")
}

// pattern replaces the names in a path by stars.
func pattern(path string) string {
	for _, section := range []string{"sources.", "routes."} {
		if rest, ok := strings.CutPrefix(path, section); ok {
			end := strings.IndexByte(rest, '.')
			if strings.HasPrefix(rest, `"`) {
				if end = strings.Index(rest[1:], `"`); end >= 0 {
					end += 2
				}
			}
			if end >= 0 && end < len(rest) {
				return section + "*" + rest[end:]
			}
		}
	}
	return path
}

// elsewhere finds an option of exactly this name in another section.
func elsewhere(key string) string {
	for _, o := range allOptions() {
		if o.Path == key || strings.HasSuffix(o.Path, "."+key) {
			return o.Path
		}
	}
	return ""
}

// nearest finds the name with the fewest slips between it and what was written;
// a third of the letters may be wrong.
func nearest(written string, names []string) (string, bool) {
	best, fewest := "", max(2, len(written)/3)+1
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", "_")) }
	for _, n := range names {
		if d := slips(plain(written), plain(n)); d < fewest && d < max(len(n), 2) {
			best, fewest = n, d
		}
	}
	return best, best != ""
}

// slips counts the letters to insert, drop, replace or swap with their neighbour
// (optimal string alignment).
func slips(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return len(a) + len(b)
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
