package pgserver

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A Postgres that is killed leaves a small System V segment behind, by which
// its next start on the same folder would know it. The kernel has room for a
// few thousand of them (kernel.shmmni) and keeps them until the machine
// restarts, so who kills a server and removes its folder has to remove them too.

// dropSegment removes the segment that a killed server's folder names.
func dropSegment(data string) {
	pid, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return
	}
	// The seventh line is the segment's key and its id.
	lines := strings.Split(string(pid), "\n")
	if len(lines) < 7 {
		return
	}
	fields := strings.Fields(lines[6])
	if len(fields) != 2 {
		return
	}
	if id, err := strconv.Atoi(fields[1]); err == nil {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
}

// segment is a line of /proc/sysvipc/shm.
type segment struct {
	id, size, creator, attached, owner int
}

// segmentSize is what Postgres asks for where its main memory is mapped.
const segmentSize = 56

// leftBehind reports whether the segment is that of a killed Postgres which ran
// as the user: nobody is attached, and who made it is gone.
func (g segment) leftBehind(user int, alive func(pid int) bool) bool {
	return g.size == segmentSize && g.attached == 0 && g.owner == user && !alive(g.creator)
}

// sweepSegments removes what test processes that were themselves killed have left.
var sweepSegments = sync.OnceFunc(func() {
	user := os.Geteuid()
	if as, err := runAs(); err == nil && as != nil {
		user = int(as.uid)
	}
	for _, g := range segments() {
		if g.leftBehind(user, alive) {
			_, _ = unix.SysvShmCtl(g.id, unix.IPC_RMID, nil)
		}
	}
})

// segments lists the System V segments; none where the kernel does not say.
func segments() []segment {
	f, err := os.Open("/proc/sysvipc/shm")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var found []segment
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// key shmid perms size cpid lpid nattch uid …
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 {
			continue
		}
		var n [5]int
		var bad bool
		for i, at := range []int{1, 3, 4, 6, 7} {
			var err error
			n[i], err = strconv.Atoi(fields[at])
			bad = bad || err != nil
		}
		if !bad {
			found = append(found, segment{id: n[0], size: n[1], creator: n[2], attached: n[3], owner: n[4]})
		}
	}
	return found
}
