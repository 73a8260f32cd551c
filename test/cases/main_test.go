// Package cases tries the field cases, one file each: what others met with outbox
// relays and log readers, tried against the real binary between real servers.
package cases

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// together is how many cases run at a time. They mostly wait: for timeouts, for
// backoffs, for the servers' own timers; the default of one per core would add
// the waits up.
const together = 6

func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", strconv.Itoa(together))
	}
	code := m.Run()
	kafkaserver.StopShared()
	pgserver.StopShared()
	rig.Cleanup()
	os.Exit(code)
}
