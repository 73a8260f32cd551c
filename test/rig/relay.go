package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/walrelay/walrelay/ops"
	"github.com/walrelay/walrelay/test/ground"
)

// Command runs walrelay with the house's configuration to its end, and returns
// what it printed and its exit code.
func (h *House) Command(t testing.TB, args ...string) (output string, code int) {
	t.Helper()
	program := Binary(t) // the first caller builds it
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(args, "--config", h.File(t))...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && ctx.Err() == nil:
		return string(out), exit.ExitCode()
	default:
		t.Fatalf("walrelay %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), 0
}

// File writes the configuration to a file that goes with the test.
func (h *House) File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "walrelay.yaml")
	if err := os.WriteFile(path, []byte(h.Config()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Relay is a running walrelay.
type Relay struct {
	t   testing.TB
	cmd *exec.Cmd
	log safeBuffer
	url string

	process *ground.Process
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Start starts a relay and waits for its status page, not for readiness. It is
// killed when the test ends; its log is printed when the test fails.
func (h *House) Start(t testing.TB, args ...string) *Relay {
	t.Helper()
	program := h.Program
	if program == "" {
		program = Binary(t)
	}
	cmd := exec.Command(program, append([]string{"run", "--log-format", "json", "--config", h.File(t)}, args...)...)
	cmd.Env = append(os.Environ(), h.Env...)
	return start(t, cmd)
}

func start(t testing.TB, cmd *exec.Cmd) *Relay {
	t.Helper()
	r := &Relay{t: t, cmd: cmd}
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	var err error
	if r.process, err = ground.StartProcess(cmd, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.process.Signal(syscall.SIGCONT)
		_ = r.process.Signal(syscall.SIGKILL)
		<-r.process.Done()
		if t.Failed() {
			t.Logf("log of relay %d:\n%s", r.cmd.Process.Pid, r.tail(8000))
		}
	})
	r.Eventually("the status page", 30*time.Second, func() error {
		if m := pageURL.FindStringSubmatch(r.Log()); m != nil {
			r.url = m[1]
			return nil
		}
		if !r.Running() {
			return nil // it ended before it had one; the caller looks at the exit code
		}
		return errors.New("not in the log yet")
	})
	return r
}

var pageURL = regexp.MustCompile(`"url":"(http://[^"]+)/"`)

func (r *Relay) tail(n int) string {
	s := r.Log()
	return s[max(0, len(s)-n):]
}

// Log is what the relay has written so far.
func (r *Relay) Log() string { return r.log.String() }

// PID is the process id.
func (r *Relay) PID() int { return r.cmd.Process.Pid }

// URL is the address of its HTTP faces, without a slash at the end.
func (r *Relay) URL() string { return r.url }

// Running reports whether the process lives.
func (r *Relay) Running() bool { return r.process.Running() }

// Signal sends a signal.
func (r *Relay) Signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Fatal(err)
	}
}

// Stop sends SIGTERM and returns the exit code and how long the end took.
func (r *Relay) Stop() (code int, took time.Duration) {
	r.t.Helper()
	began := time.Now()
	r.Signal(syscall.SIGTERM)
	return r.Wait(90 * time.Second), time.Since(began)
}

// Kill sends SIGKILL and waits for the end.
func (r *Relay) Kill() {
	r.t.Helper()
	r.Signal(syscall.SIGKILL)
	r.Wait(10 * time.Second)
}

// Wait waits for the end of the process and returns its exit code.
func (r *Relay) Wait(limit time.Duration) int {
	r.t.Helper()
	select {
	case <-r.process.Done():
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		r.t.Fatalf("the relay did not end within %s", limit)
		return -1
	}
}

// Get asks one of its HTTP faces.
func (r *Relay) Get(path string) (status int, body string, err error) {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(r.url + path)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// Status asks /api/status.
func (r *Relay) Status() (ops.Status, error) {
	var st ops.Status
	code, body, err := r.Get("/api/status")
	if err != nil {
		return st, err
	}
	if code != http.StatusOK {
		return st, fmt.Errorf("/api/status answers %d", code)
	}
	return st, json.Unmarshal([]byte(body), &st)
}

// WaitReady waits until /readyz says 200.
func (r *Relay) WaitReady(limit time.Duration) {
	r.t.Helper()
	r.Eventually("readiness", limit, func() error {
		code, body, err := r.Get("/readyz")
		if err == nil && code != http.StatusOK {
			err = errors.New(body)
		}
		return err
	})
}

// WaitNotReady waits until /readyz says 503 with a text in its reasons, and returns the answer.
func (r *Relay) WaitNotReady(limit time.Duration, text string) string {
	r.t.Helper()
	var last string
	r.Eventually("not being ready because of "+strconv.Quote(text), limit, func() error {
		code, body, err := r.Get("/readyz")
		if err != nil {
			return err
		}
		last = body
		if code != http.StatusServiceUnavailable || !strings.Contains(body, text) {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	return last
}

// Metric sums the samples of a metric whose labels contain all the given texts.
func (r *Relay) Metric(name string, labels ...string) float64 {
	r.t.Helper()
	_, body, err := r.Get("/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	sum := 0.0
lines:
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest == "" || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(rest, l) {
				continue lines
			}
		}
		v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			r.t.Fatalf("metric line %q: %v", line, err)
		}
		sum += v
	}
	return sum
}

// RSS is the resident memory of the process in bytes; peak is the most it ever was.
func (r *Relay) RSS() (now, peak int64) {
	r.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.PID()))
	if err != nil {
		r.t.Fatal(err)
	}
	field := func(name string) int64 {
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(line, name); ok {
				kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
				return kib << 10
			}
		}
		return 0
	}
	return field("VmRSS:"), field("VmHWM:")
}

// Eventually asks again until try returns nil, at most for limit.
func (r *Relay) Eventually(what string, limit time.Duration, try func() error) {
	r.t.Helper()
	Eventually(r.t, what, limit, try)
}

// Eventually asks again until try returns nil, at most for limit.
func Eventually(t testing.TB, what string, limit time.Duration, try func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s was not there within %s: %v", what, limit, err)
		}
		<-tick.C
	}
}
