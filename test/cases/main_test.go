// Package cases tries the field cases, one file each: what others met with outbox
// relays and log readers, tried against the real binary between real servers.
package cases

import (
	"testing"

	"github.com/walrelay/walrelay/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m, 8) }
