package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/walrelay/walrelay/test/ground"
)

// start writes the configuration, runs walrelay init, starts walrelay run and
// waits until it is ready.
func (st *stage) start(ctx context.Context) error {
	if err := st.writeConfig(); err != nil {
		return err
	}
	st.p.line("\n$ walrelay init")
	init := st.command("init")
	out, err := init.CombinedOutput()
	st.p.line("%s", strings.TrimRight(string(out), "\n"))
	if err != nil {
		return fmt.Errorf("walrelay init: %w", err)
	}
	st.p.line("\n$ walrelay run\nstatus page  http://%s/\nlog          %s", st.listen, st.logPath)
	log, err := os.Create(st.logPath)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := st.command("run")
	cmd.Stdout, cmd.Stderr = log, log
	if st.relay, err = ground.StartProcess(cmd, syscall.SIGKILL); err != nil {
		return fmt.Errorf("walrelay run: %w", err)
	}
	return st.waitReady(ctx)
}

func (st *stage) command(args ...string) *exec.Cmd {
	cmd := exec.Command(st.program, args...)
	// In a process group of its own a ctrl-C does not reach it: we end it in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for _, v := range os.Environ() {
		// Variables win over the file: a broker of yours in one would get the demo's events.
		if !strings.HasPrefix(v, "WALRELAY_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "WALRELAY_CONFIG="+st.configPath, st.db.env())
	return cmd
}

func (st *stage) relayEnded() <-chan struct{} { return st.relay.Done() }

func (st *stage) waitReady(ctx context.Context) error {
	deadline := time.After(30 * time.Second)
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	last := errors.New("it has no status page yet")
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-st.relay.Done():
			return fmt.Errorf("walrelay run ended at once: %w", st.relay.Err())
		case <-deadline:
			return fmt.Errorf("walrelay is not ready after 30 s: %w", last)
		case <-retry.C:
		}
		if last = st.ready(ctx); last == nil {
			return nil
		}
	}
}

func (st *stage) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+st.listen+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(body)))
	}
	return err
}

// stopRelay asks the relay to end and waits until it has.
func (st *stage) stopRelay() (code int, took time.Duration, err error) {
	began := time.Now()
	if err := st.relay.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, 0, err
	}
	select {
	case <-st.relay.Done():
	case <-time.After(40 * time.Second):
		return 0, 0, errors.New("walrelay did not end within 40 s of SIGTERM")
	}
	var exit *exec.ExitError
	if errors.As(st.relay.Err(), &exit) {
		code = exit.ExitCode()
	}
	return code, time.Since(began), nil
}
