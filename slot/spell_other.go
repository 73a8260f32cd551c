//go:build !linux

package slot

import (
	"errors"
	"syscall"
)

// setLowWaterMark: other kernels have it as well, but nobody has measured there.
func setLowWaterMark(syscall.RawConn, int) error { return errors.ErrUnsupported }
