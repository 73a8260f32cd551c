package mongo

import (
	"fmt"
	"strings"
	"time"
)

// momentLayout is how the server's times are written as text: milliseconds are all that
// BSON has, and text in this form sorts as time does.
const momentLayout = "2006-01-02T15:04:05.000Z"

// forever is the end of a tenure that has none yet.
const forever = "infinity"

func momentText(t time.Time) string { return t.UTC().Format(momentLayout) }

// parseMoment reads the text of a time, or of a fence, which begins with one. endless says
// that it is no time, but never.
func parseMoment(s string) (t time.Time, endless bool, err error) {
	s, _, _ = strings.Cut(s, " ")
	if s == forever {
		return time.Time{}, true, nil
	}
	if t, err = time.Parse(momentLayout, s); err != nil {
		return t, false, fmt.Errorf("%q is no time of a claim or a lease: %w", s, err)
	}
	return t, false, nil
}
