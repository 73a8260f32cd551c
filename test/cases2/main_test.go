// Package cases2 tries the field cases of outages, limits and operations, one
// file each. It is apart from test/cases because most of these wait for a server
// that is away or slow.
package cases2

import (
	"testing"

	"github.com/walrelay/walrelay/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m, 8) }
