// Package cases2 tries the field cases of outages, limits and operations, one
// file each. It is apart from test/cases because most of these wait for a server
// that is away or slow: here they wait side by side.
package cases2

import (
	"flag"
	"os"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// By default as many tests run at a time as there are cores; these wait more
	// than they work.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("8")
	}
	code := m.Run()
	kafkaserver.StopShared()
	pgserver.StopShared()
	rig.Cleanup()
	os.Exit(code)
}
