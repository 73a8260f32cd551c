package stage

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// check refuses what the database or the relay would refuse later, at a higher price:
// a statement that fails takes the whole transaction with it.
func (e *Event) check() error {
	for _, f := range []struct {
		name, value string
		required    bool
	}{
		{"its route", e.Route, true}, {"its type", e.Type, true}, {"its key", e.Key, false}, {"its traceparent", e.Traceparent, false},
	} {
		if err := checkText(f.value, f.required); err != nil {
			return fmt.Errorf("%s %w", f.name, err)
		}
	}
	if e.AggregateVersion < 0 {
		return fmt.Errorf("its aggregate version %d is negative", e.AggregateVersion)
	}
	// The years that every reader of the header can read back.
	if y := e.OccurredAt.UTC().Year(); y < 1 || y > 9999 {
		return fmt.Errorf("it occurred in the year %d", y)
	}
	return nil
}

func checkText(s string, required bool) error {
	switch {
	case required && s == "":
		return errors.New("is empty")
	case !utf8.ValidString(s):
		return errors.New("is not UTF-8")
	case strings.Contains(s, "\x00"):
		return errors.New("holds a NUL, which Postgres has no text for")
	}
	return nil
}

// Check refuses a message that could not be written, or would be read as another.
func (m *Message) Check() error {
	if err := checkText(m.Route, true); err != nil {
		return fmt.Errorf("message: its route %w", err)
	}
	if strings.Contains(m.Route, "/") {
		return fmt.Errorf("message for route %q: a slash ends a route", m.Route)
	}
	if err := checkText(m.Key, false); err != nil {
		return fmt.Errorf("message for route %q: its key %w", m.Route, err)
	}
	return nil
}
