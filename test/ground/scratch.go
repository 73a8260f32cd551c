package ground

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Scratch is a folder outside the checkout for unpacked programs and data. The
// checkout may lie where only root can go, and Postgres does not run as root, so
// every folder above Scratch lets other users pass. Its name is stable, so what
// is unpacked there serves later runs of the same user.
func Scratch() (string, error) {
	parent := os.TempDir()
	if !passable(parent) {
		parent = "/tmp"
	}
	dir := filepath.Join(parent, fmt.Sprintf("walrelay-test-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return "", err
	}
	// The name can be guessed: programs are run from here, so a folder that somebody
	// else put there must not be used.
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.IsDir() || int(owner) != os.Geteuid() {
		return "", fmt.Errorf("%s belongs to user %d and not to user %d: remove it or set TMPDIR", dir, owner, os.Geteuid())
	}
	return dir, os.Chmod(dir, 0o755)
}

func passable(dir string) bool {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// RunDir makes a new folder for one server under Scratch. It is locked for as
// long as this process lives or until release; SweepRuns removes what dead
// processes left.
func RunDir(kind string) (dir string, release func(), err error) {
	scratch, err := Scratch()
	if err != nil {
		return "", nil, err
	}
	unlock, err := Lock(filepath.Join(scratch, "run.lock"))
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	sweepRuns(scratch)
	dir, err = os.MkdirTemp(scratch, "run-"+kind+"-")
	if err != nil {
		return "", nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", nil, err
	}
	held, err := Lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		_ = os.RemoveAll(dir)
		held()
	}, nil
}

// sweepRuns removes the folders whose lock nobody holds. The caller holds
// run.lock, so a folder between its making and its locking is not taken.
func sweepRuns(scratch string) {
	entries, err := os.ReadDir(scratch)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "run-") {
			continue
		}
		dir := filepath.Join(scratch, e.Name())
		if unlock, ok := tryLock(filepath.Join(dir, "lock")); ok {
			_ = os.RemoveAll(dir)
			unlock()
		}
	}
}
