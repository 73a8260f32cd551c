package ground

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Process is a child that gets a signal when this process dies, however it dies.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // what Wait said; read after done
}

// StartProcess starts cmd in a process group of its own. When this process dies
// the kernel sends the child the signal atDeath.
func StartProcess(cmd *exec.Cmd, atDeath syscall.Signal) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = atDeath
	cmd.SysProcAttr.Setpgid = true
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel means the parent's thread, not its process (golang/go#27505): this
		// goroutine keeps its thread until the child has ended.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, <-started
}

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the child ended; call it after Done is closed.
func (p *Process) Err() error { return p.err }

// Running reports whether the child has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends the signal to the child alone.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }
