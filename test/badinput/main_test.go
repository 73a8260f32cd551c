package badinput

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
