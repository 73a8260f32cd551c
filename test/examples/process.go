package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/walrelay/walrelay/test/ground"
)

// process is a running program with its log.
type process struct {
	*ground.Process
	name, log string
	cmd       *exec.Cmd
}

// start starts one of the built programs; what it prints is added to its log.
func (st *stage) start(name string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(st.dir, name+".log")}
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd = st.command(name, args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.Process, err = ground.StartProcess(p.cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return p, nil
}

func (st *stage) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(st.dir, name), args...)
	// In a process group of its own a ctrl-C does not reach it: we end it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, v := range os.Environ() {
		// Variables win over the file: a broker of yours in one would get the example's events.
		if !strings.HasPrefix(v, "WALRELAY_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, st.variables()...)
	return cmd
}

// variables are what the programs are told where things are.
func (st *stage) variables() []string {
	return []string{
		"WALRELAY_CONFIG=" + st.configPath(), "ORDERS_DATABASE_URL=" + st.ordersURL,
		"PAYMENTS_DATABASE_URL=" + st.paidURL, "KAFKA_BROKERS=" + st.brokers,
	}
}

// kill ends a process as a crash does.
func (p *process) kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.Done()
}

// stop asks a process to end; an end with an error is one.
func (p *process) stop() error {
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return p.wait()
}

// wait waits for the end, which should be near.
func (p *process) wait() error {
	select {
	case <-p.Done():
	case <-time.After(40 * time.Second):
		return fmt.Errorf("%s did not end within 40 s", p.name)
	}
	return p.ended()
}

// ended is how a process that has ended did so.
func (p *process) ended() error {
	if err := p.Err(); err != nil {
		return fmt.Errorf("%s ended with %w:\n%s", p.name, err, p.tail())
	}
	return nil
}

func (p *process) tail() string {
	lines := strings.Split(strings.TrimSpace(p.text()), "\n")
	return "    " + strings.Join(lines[max(0, len(lines)-15):], "\n    ")
}

// text is all that the program has printed, also before it was started again.
func (p *process) text() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
