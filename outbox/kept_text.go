package outbox

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// PlainText writes any string as text that every database takes: as it is, or where it cannot
// be, because it holds the byte zero or is not UTF-8 (or looks as if it had been rewritten), as
// \x and hexadecimal digits. [FromPlainText] is the way back.
func PlainText(s string) string {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.HasPrefix(s, `\x`) {
		return s
	}
	return `\x` + hex.EncodeToString([]byte(s))
}

// FromPlainText is the string that [PlainText] wrote.
func FromPlainText(s string) string {
	if digits, ok := strings.CutPrefix(s, `\x`); ok {
		if b, err := hex.DecodeString(digits); err == nil {
			return string(b)
		}
	}
	return s
}

// Printable makes a message storable. It need not come back as it was.
func Printable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", `\0`)
}
