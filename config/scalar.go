package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// leaf is a type that reads itself from a scalar's text.
type leaf interface {
	parse(text string) error
	want() string // what it takes, after "want"
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
	dsnType      = reflect.TypeFor[DSN]()
	leafType     = reflect.TypeFor[leaf]()
)

// isSecret reports whether values of the type must not stand in any message.
func isSecret(t reflect.Type) bool { return t == secretType || t == dsnType }

// isScalar reports whether an option of the type is one value.
func isScalar(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(leafType) {
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
		return true
	default:
		return false
	}
}

// wanted says what an option of the type takes.
func wanted(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration such as 10s or 500ms"
	case reflect.PointerTo(t).Implements(leafType):
		return reflect.New(t).Interface().(leaf).want()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "text"
	case reflect.Slice:
		if _, isMap := reflect.New(t).Interface().(mapping); isMap {
			return "a mapping"
		}
		return "a list, in square brackets or with a line for each entry"
	default:
		return "a mapping"
	}
}

// setScalar reads text into v. The error says what is wanted; it may quote the text.
func setScalar(v reflect.Value, s string) error {
	if l, ok := v.Addr().Interface().(leaf); ok {
		return l.parse(s)
	}
	switch {
	case v.Type() == durationType:
		d, err := parseDuration(s)
		v.SetInt(int64(d))
		return err
	case v.Kind() == reflect.String:
		v.SetString(s)
	case v.Kind() == reflect.Bool && (s == "true" || s == "false"):
		v.SetBool(s == "true")
	case v.Kind() == reflect.Int:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
			return errors.New("want " + wanted(v.Type()))
		}
		v.SetInt(n)
	default:
		return errors.New("want " + wanted(v.Type()))
	}
	return nil
}

func parseDuration(s string) (time.Duration, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, nil
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		return 0, fmt.Errorf("a number without a unit: write %[1]ss for seconds or %[1]sms for milliseconds", s)
	}
	return 0, errors.New("want " + wanted(durationType))
}

// showScalar is the value as the file would have it; secrets are masked.
func showScalar(v reflect.Value) string {
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprint(v.Interface())
}
