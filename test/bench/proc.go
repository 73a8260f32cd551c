package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tick is the kernel's unit of CPU time (USER_HZ), 100 on every Linux of today.
const tick = 10 * time.Millisecond

// cpuOf is the CPU time that a process has used; false when it is gone.
func cpuOf(pid int) (time.Duration, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// After the name in parentheses: state is the first field, utime the 12th.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * tick, err1 == nil && err2 == nil
}

// watch samples the CPU time and memory of a process until stopped: a walsender is gone
// as soon as its client is.
type watch struct {
	stop chan struct{}
	done sync.WaitGroup
	last time.Duration
	peak int64 // bytes
}

func watchProcess(pid int) *watch {
	w := &watch{stop: make(chan struct{})}
	w.done.Go(func() {
		for {
			if used, ok := cpuOf(pid); ok {
				w.last = used
			}
			w.peak = max(w.peak, peakOf(pid))
			select {
			case <-w.stop:
				return
			case <-time.After(tick):
			}
		}
	})
	return w
}

// end stops and answers the last samples.
func (w *watch) end() (cpu time.Duration, peak int64) {
	close(w.stop)
	w.done.Wait()
	return w.last, w.peak
}

// peakOf is the most memory that a process ever had resident, in bytes. (What
// wait4 says of a child includes the time before its exec, when it still was us.)
func peakOf(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(b, []byte("VmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte("kB"))
	kib, _ := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	return kib << 10
}
