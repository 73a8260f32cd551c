package pgserver

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/ground"
)

var errNotRunning = errors.New("the server is not running, or is not ours to control")

// running returns the postmaster, or errNotRunning.
func (s *Server) running() (*ground.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || !s.process.Running() {
		return nil, errNotRunning
	}
	return s.process, nil
}

// Running reports whether the server has not ended.
func (s *Server) Running() bool {
	_, err := s.running()
	return err == nil || s.external != ""
}

// Pause freezes the server: every process gets SIGSTOP, connections stay open
// and silent, as when its machine hangs.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	p, err := s.running()
	if err != nil {
		t.Fatalf("pause Postgres: %v", err)
	}
	// The postmaster first: it then makes no more children.
	pids := []int{p.PID()}
	_ = syscall.Kill(p.PID(), syscall.SIGSTOP)
	for _, pid := range children(p.PID()) {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		pids = append(pids, pid)
	}
	g, err := newGuard(pids)
	if err != nil {
		s.unfreeze()
		t.Fatalf("pause Postgres: %v", err)
	}
	s.mu.Lock()
	s.guard = g
	s.mu.Unlock()
}

// Continue ends a Pause.
func (s *Server) Continue(t testing.TB) {
	t.Helper()
	if _, err := s.running(); err != nil {
		t.Fatalf("continue Postgres: %v", err)
	}
	s.unfreeze()
}

func (s *Server) unfreeze() {
	s.mu.Lock()
	g := s.guard
	s.guard = nil
	s.mu.Unlock()
	if g != nil {
		g.dismiss()
	}
	p, err := s.running()
	if err != nil {
		return
	}
	for _, pid := range append(children(p.PID()), p.PID()) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// kill ends the postmaster and its children with SIGKILL, waits for all, and
// removes the shared memory that they leave.
func (s *Server) kill() {
	defer dropSegment(s.data)
	p, err := s.running()
	if err != nil {
		return
	}
	_ = syscall.Kill(p.PID(), syscall.SIGSTOP)
	pids := children(p.PID())
	_ = syscall.Kill(p.PID(), syscall.SIGKILL)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.Done()
	// The children are now somebody else's, so there is nothing to wait on but /proc.
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for _, pid := range pids {
		for alive(pid) {
			<-poll.C
		}
	}
}

// children lists the processes whose parent is pid. Each of Postgres's children
// leads a session of its own, so a signal to a process group reaches none.
func children(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var found []int
	for _, path := range stats {
		fields := statFields(path)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found = append(found, child)
		}
	}
	return found
}

// alive reports whether the process still runs; a zombie does not.
func alive(pid int) bool {
	fields := statFields("/proc/" + strconv.Itoa(pid) + "/stat")
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// statFields reads a stat file of proc(5) from its third field on: state, parent, …
// The second is the program's name in parentheses, which may hold anything.
func statFields(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}

// guard is a child that kills frozen processes when this process dies: a
// frozen postmaster does not hear its parent-death signal, and its children
// would stay frozen for ever.
type guard struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
}

func newGuard(pids []int) (*guard, error) {
	args := []string{"-c", `read -r word; [ "$word" = dismissed ] || kill -9 "$@"`, "guard"}
	for _, pid := range pids {
		args = append(args, strconv.Itoa(pid))
	}
	cmd := exec.Command("/bin/sh", args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not in our group: what ends us must not end the guard.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &guard{cmd: cmd, stdin: stdin}, cmd.Start()
}

func (g *guard) dismiss() {
	_, _ = io.WriteString(g.stdin, "dismissed\n")
	_ = g.stdin.Close()
	_ = g.cmd.Wait()
}
