package mongo

import "encoding/hex"

// parseUUID takes the usual form: 8-4-4-4-12 digits, in lower case.
func parseUUID(s string) ([]byte, bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return nil, false
	}
	b, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	return b, err == nil
}
