// Package promises has tests of promises of the README that no field case and no
// chaos proves by itself.
package promises

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
