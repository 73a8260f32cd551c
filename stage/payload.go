package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// marshal makes JSON of a payload, and refuses what is no object, or what a jsonb
// column cannot hold. Its errors name places, never contents.
func marshal(payload any) (json.RawMessage, error) {
	var body json.RawMessage
	if raw, ok := payload.(json.RawMessage); ok {
		if !json.Valid(raw) {
			return nil, errors.New("its payload is a json.RawMessage, but no JSON")
		}
		body = bytes.Clone(raw) // the caller's bytes stay the caller's
	} else {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false) // no page will show it, and messages pass it on as it is
		if err := enc.Encode(payload); err != nil {
			return nil, fmt.Errorf("its payload of type %T cannot be made JSON: %w", payload, err)
		}
		body = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	if first := firstByte(body); first != '{' {
		return nil, fmt.Errorf("its payload is no JSON object, it begins with %q: readers of the outbox decode an object", first)
	}
	if err := checkJSONB(body); err != nil {
		return nil, err
	}
	return body, nil
}

func firstByte(body []byte) byte {
	for _, c := range body {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// checkJSONB finds what is JSON and no jsonb: the character U+0000, halves of a
// surrogate pair, and bytes that are not UTF-8. body is valid JSON.
//
// Source: PostgreSQL src/common/jsonapi.c, json_lex_string.
func checkJSONB(body []byte) error {
	if !utf8.Valid(body) {
		return errors.New("its payload is not UTF-8")
	}
	high := false // the last thing was the first half of a pair
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			if high {
				return halfPair(i)
			}
			continue
		}
		i++ // valid JSON: a backslash is inside a string and something follows
		if body[i] != 'u' {
			if high {
				return halfPair(i)
			}
			continue
		}
		code, err := strconv.ParseUint(string(body[i+1:i+5]), 16, 16)
		if err != nil {
			return fmt.Errorf("its payload has a broken escape at byte %d", i)
		}
		i += 4
		low := code >= 0xdc00 && code <= 0xdfff
		switch {
		case code == 0:
			return fmt.Errorf("its payload holds the character U+0000 at byte %d, which Postgres has no text for", i-5)
		case low != high:
			return halfPair(i)
		}
		high = code >= 0xd800 && code <= 0xdbff
	}
	return nil
}

func halfPair(at int) error {
	return fmt.Errorf("its payload holds half of a surrogate pair near byte %d", at)
}
