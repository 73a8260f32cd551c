package document

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
)

var (
	errNoID     = errors.New("it is missing")
	errNoNumber = errors.New("it is no whole number")
	errNoDate   = errors.New("it is no date")
	// Drivers differ in the order of these bytes: a guess would be another id.
	errLegacyUUID = errors.New("it is a UUID of binary subtype 3, and which driver wrote it is not known: set legacy_uuid, or write subtype 4")
)

// field gives a field's text. False: it could not be read, and the event is refused.
func (a *appending) field(f event.Field, e *bsonjson.Elements) (text []byte, ok bool) {
	name := a.r.schema.Columns[f]
	switch f {
	case event.HLC, event.Version:
		if !wholeNumber(e) {
			a.refuse(name, errNoNumber)
			return nil, false
		}
	case event.AvailableAt:
		switch e.Type {
		case bsonjson.TypeDate:
			a.due, a.timed = int64(binary.LittleEndian.Uint64(e.Value)), true
		case bsonjson.TypeNull, bsonjson.TypeUndefined:
		default: // no query for what is due would ever find it
			a.refuse(name, errNoDate)
			return nil, false
		}
	}
	return a.text(e, name)
}

func wholeNumber(e *bsonjson.Elements) bool {
	switch e.Type {
	case bsonjson.TypeInt32, bsonjson.TypeInt64, bsonjson.TypeString, bsonjson.TypeNull, bsonjson.TypeUndefined:
		return true
	case bsonjson.TypeDouble:
		_, whole := integer(e.Value)
		return whole
	}
	return false
}

// integer gives a double as an integer where it is one.
func integer(value []byte) (int64, bool) {
	f := math.Float64frombits(binary.LittleEndian.Uint64(value))
	if f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 { // NaN is not equal to itself
		return 0, false
	}
	return int64(f), true
}

// text gives a value as text, nil for null. False: it could not be read, and the event is refused.
func (a *appending) text(e *bsonjson.Elements, name string) (text []byte, ok bool) {
	start := len(a.dst)
	switch e.Type {
	case bsonjson.TypeString:
		n := len(e.Value) - 1
		return e.Value[4:n:n], true
	case bsonjson.TypeNull, bsonjson.TypeUndefined:
		return nil, true
	case bsonjson.TypeDate:
		a.dst = appendTimestamp(a.dst, int64(binary.LittleEndian.Uint64(e.Value)))
		return made(a.dst, start), true
	case bsonjson.TypeBinary:
		if a.r.legacyUnknown && isLegacyUUID(e.Value) {
			a.refuse(name, errLegacyUUID)
			return nil, false
		}
	case bsonjson.TypeDouble:
		if v, whole := integer(e.Value); whole {
			a.dst = strconv.AppendInt(a.dst, v, 10)
			return made(a.dst, start), true
		}
	}
	grown, err := a.r.text.AppendText(a.dst, e.Type, e.Value)
	if err != nil {
		a.refuse(name, err)
		return nil, false
	}
	a.dst = grown
	return made(grown, start), true
}

// isLegacyUUID reads a binary: its length, subtype and bytes.
func isLegacyUUID(binary []byte) bool { return len(binary) == 4+1+16 && binary[4] == 3 }
