package oracle

import (
	"fmt"
	"strings"
)

// Verdict counts what was wrong. The zero value is an acquittal.
type Verdict struct {
	Committed int // events that should have arrived
	Records   int // records that did

	Lost       int // committed, and in no record
	Duplicates int // records beyond the first with the same event id
	Inversions int // first appearances that come after a later event of their key
	Phantoms   int // records of events that were never committed, or without an id
	Changed    int // a value unlike the committed one, or a duplicate unlike the first record
	Misplaced  int // a record key other than the event's, or one key in two partitions of a topic

	// Examples has a sentence for each of the first few of every kind.
	Examples []string

	shown map[string]int
}

// examplesPerKind keeps the output readable when everything is wrong.
const examplesPerKind = 5

func (v *Verdict) note(count *int, kind, format string, args ...any) {
	*count++
	if v.shown == nil {
		v.shown = map[string]int{}
	}
	if v.shown[kind]++; v.shown[kind] <= examplesPerKind {
		v.Examples = append(v.Examples, kind+": "+fmt.Sprintf(format, args...))
	}
}

// Clean reports whether nothing is wrong, duplicates included.
func (v Verdict) Clean() bool { return v.CleanButForDuplicates() && v.Duplicates == 0 }

// CleanButForDuplicates reports whether nothing is wrong that a crash excuses.
func (v Verdict) CleanButForDuplicates() bool {
	return v.Lost == 0 && v.Inversions == 0 && v.Phantoms == 0 && v.Changed == 0 && v.Misplaced == 0
}

func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d committed, %d records: %d lost, %d duplicates, %d inversions, %d phantoms, %d changed, %d misplaced",
		v.Committed, v.Records, v.Lost, v.Duplicates, v.Inversions, v.Phantoms, v.Changed, v.Misplaced)
	for _, example := range v.Examples {
		b.WriteString("\n  " + example)
	}
	return b.String()
}
