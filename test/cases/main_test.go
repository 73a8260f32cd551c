// Package cases tries the field cases, one file each: what others met with outbox
// relays and log readers, tried against the real binary between real servers.
package cases

import (
	"os"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestMain(m *testing.M) {
	code := m.Run()
	kafkaserver.StopShared()
	pgserver.StopShared()
	rig.Cleanup()
	os.Exit(code)
}
