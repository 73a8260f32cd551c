package slot

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func setLowWaterMark(c syscall.RawConn, bytes int) error {
	var err error
	if cerr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes)
	}); cerr != nil {
		return cerr
	}
	return err
}
