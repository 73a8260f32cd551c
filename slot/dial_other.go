//go:build !linux

package slot

import (
	"syscall"
	"time"
)

// userTimeout exists on Linux only; elsewhere keepalive and the stream's own
// watch over the wire have to do.
func userTimeout(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
