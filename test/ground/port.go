package ground

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Ports are taken from below Linux's default range for outgoing connections
// (32768 and up): a server that is down for a while must find its port free
// again, and a port of that range could meanwhile be somebody's client port.
const (
	firstPort = 20000
	lastPort  = 32000
)

// Port reserves a TCP port on loopback for as long as this process lives or
// until release. Other test processes of the same user do not get it.
func Port() (port int, release func(), err error) {
	scratch, err := Scratch()
	if err != nil {
		return 0, nil, err
	}
	dir := filepath.Join(scratch, "ports")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, nil, err
	}
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		release, ok := tryLock(filepath.Join(dir, strconv.Itoa(port)))
		if !ok {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			release()
			continue
		}
		if err := l.Close(); err != nil {
			release()
			return 0, nil, err
		}
		return port, release, nil
	}
	return 0, nil, fmt.Errorf("no free port between %d and %d after 1000 tries", firstPort, lastPort)
}
