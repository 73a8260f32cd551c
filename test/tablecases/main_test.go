// Package tablecases tries the field cases that are about the outbox table, one
// file each: claims, leases, marks, gaps that the table fills. The real binary
// stands between real servers.
package tablecases

import (
	"testing"

	"github.com/walrelay/walrelay/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m, 8) }
