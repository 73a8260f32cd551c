package mongo

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxLevels is how deep a payload may be nested. MongoDB answers for documents of 100
// levels, of which the row's own document is one.
//
// Source: MongoDB manual, "MongoDB Limits and Thresholds", Nested Depth.
const maxLevels = 99

// payloadDocument makes BSON of a JSON object, value by value: nothing in it is taken
// for Extended JSON, so that {"$oid": "x"} comes out as it went in. The driver's own
// reader of JSON knows no other way.
//
// body was checked when it was staged: it is a JSON object in UTF-8, without U+0000 and
// without halves of surrogate pairs. Errors name places, never contents.
func payloadDocument(body json.RawMessage) (bson.Raw, error) {
	c := converter{in: body, out: make([]byte, 0, len(body)+len(body)/4+16)}
	c.space()
	if err := c.container('}'); err != nil {
		return nil, fmt.Errorf("its payload %w", err)
	}
	return c.out, nil
}

type converter struct {
	in    []byte
	at    int // the next byte of in
	out   []byte
	level int
}

// container reads an object or an array up to its end, and writes
//
//	int32 size of all of it, elements, 0x00
//
// as BSON has both; an array's keys are the decimal numbers from 0.
//
// Source: bsonspec.org, version 1.1.
func (c *converter) container(end byte) error {
	if c.level++; c.level > maxLevels {
		return fmt.Errorf("is nested deeper than %d levels at byte %d, which MongoDB does not store", maxLevels, c.at)
	}
	start := len(c.out)
	c.out = append(c.out, 0, 0, 0, 0)
	c.at++
	for n := 0; ; n++ {
		c.space()
		if c.in[c.at] == ',' {
			c.at++
			c.space()
		}
		if c.in[c.at] == end {
			break
		}
		if err := c.element(end, n); err != nil {
			return err
		}
	}
	c.at++
	c.out = append(c.out, 0)
	binary.LittleEndian.PutUint32(c.out[start:], uint32(len(c.out)-start))
	c.level--
	return nil
}

// element writes its type, its key with a NUL behind it, and its value.
func (c *converter) element(end byte, n int) error {
	typ := len(c.out)
	c.out = append(c.out, 0)
	if end == ']' {
		c.out = strconv.AppendInt(c.out, int64(n), 10)
	} else {
		if err := c.text(); err != nil {
			return err
		}
		c.space()
		c.at++ // the colon
		c.space()
	}
	c.out = append(c.out, 0)
	t, err := c.value()
	c.out[typ] = byte(t)
	return err
}

func (c *converter) value() (bson.Type, error) {
	switch c.in[c.at] {
	case '{':
		return bson.TypeEmbeddedDocument, c.container('}')
	case '[':
		return bson.TypeArray, c.container(']')
	case '"':
		start := len(c.out)
		c.out = append(c.out, 0, 0, 0, 0)
		err := c.text()
		c.out = append(c.out, 0)
		binary.LittleEndian.PutUint32(c.out[start:], uint32(len(c.out)-start-4))
		return bson.TypeString, err
	case 't':
		c.at += len("true")
		c.out = append(c.out, 1)
		return bson.TypeBoolean, nil
	case 'f':
		c.at += len("false")
		c.out = append(c.out, 0)
		return bson.TypeBoolean, nil
	case 'n':
		c.at += len("null")
		return bson.TypeNull, nil
	default:
		return c.number()
	}
}

// text writes what a string says.
func (c *converter) text() error {
	start, escaped := c.at, false
	c.at++
	for ; c.in[c.at] != '"'; c.at++ {
		if c.in[c.at] == '\\' {
			escaped = true
			c.at++
		}
	}
	c.at++
	if !escaped {
		c.out = append(c.out, c.in[start+1:c.at-1]...)
		return nil
	}
	var s string
	if err := json.Unmarshal(c.in[start:c.at], &s); err != nil {
		return fmt.Errorf("has a broken string at byte %d", start)
	}
	c.out = append(c.out, s...)
	return nil
}

// number writes an int32 or an int64 where the number is an integer, as drivers of
// other languages do, else a double; a number that none of them holds is refused.
func (c *converter) number() (bson.Type, error) {
	start := c.at
	for c.at < len(c.in) && isNumber(c.in[c.at]) {
		c.at++
	}
	literal := string(c.in[start:c.at])
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil && literal != "-0" {
		if int64(int32(n)) == n {
			c.out = binary.LittleEndian.AppendUint32(c.out, uint32(n))
			return bson.TypeInt32, nil
		}
		c.out = binary.LittleEndian.AppendUint64(c.out, uint64(n))
		return bson.TypeInt64, nil
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || !sameNumber(literal, strconv.FormatFloat(f, 'e', -1, 64)) {
		return 0, fmt.Errorf("has a number of %d digits or more at byte %d that neither int64 nor double holds: make it a string, or set PayloadAsText", min(len(literal), 17), start)
	}
	c.out = binary.LittleEndian.AppendUint64(c.out, math.Float64bits(f))
	return bson.TypeDouble, nil
}

func isNumber(b byte) bool {
	return b >= '0' && b <= '9' || b == '-' || b == '+' || b == '.' || b == 'e' || b == 'E'
}

func (c *converter) space() {
	for c.in[c.at] == ' ' || c.in[c.at] == '\t' || c.in[c.at] == '\r' || c.in[c.at] == '\n' {
		c.at++
	}
}
