package postgres

import "testing"

func TestIdsThatAreNotAsTheServerPrintsThemAreNeverSentBinary(t *testing.T) {
	t.Parallel()
	for oid, ids := range map[string][]string{
		uuidOID: {"{00000000-0000-0000-0000-000000000001}", "00000000-0000-0000-0000-00000000000g", "", "00000000000000000000000000000000abcd"},
		int4OID: {"2147483648", "x", ""},
		int8OID: {"9223372036854775808", "1.0"},
		"25":    {"text"},
	} {
		for _, id := range ids {
			if b, ok := binaryArray(oid, []string{id}); ok {
				t.Errorf("%q became %x", id, b)
			}
		}
	}
}
