package rig

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

// Main runs the tests of a package that share servers, so many at a time, and
// stops the servers. Such tests mostly wait: for timeouts, for backoffs, for the
// servers' own timers; the default of one per core would add the waits up. A
// -parallel on the command line wins.
func Main(m *testing.M, together int) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", strconv.Itoa(together))
	}
	code := m.Run()
	kafkaserver.StopShared()
	pgserver.StopShared()
	mongoserver.StopShared()
	Cleanup()
	os.Exit(code)
}
