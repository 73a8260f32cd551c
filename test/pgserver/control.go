package pgserver

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Mode is a way to shut a server down.
type Mode string

// The modes, as in pg_ctl stop -m.
const (
	Smart     Mode = "smart"     // waits until clients have left
	Fast      Mode = "fast"      // ends sessions, waits for walsenders to send the rest
	Immediate Mode = "immediate" // no checkpoint; the next start recovers
)

func (m Mode) signal() syscall.Signal {
	switch m {
	case Smart:
		return syscall.SIGTERM
	case Immediate:
		return syscall.SIGQUIT
	default:
		return syscall.SIGINT
	}
}

// stopWithin bounds Stop: longer than any shutdown that a test accepts.
const stopWithin = 90 * time.Second

// Stop shuts the server down and returns how long that took. The test fails
// when the server still runs after 90 s; StopContext has a limit of the caller's.
func (s *Server) Stop(t testing.TB, mode Mode) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	took, err := s.StopContext(ctx, mode)
	if err != nil {
		t.Fatalf("stop Postgres: %v\n%s", err, s.logTail())
	}
	return took
}

// StopContext asks the server to shut down and waits until it has or ctx ends.
// After an error the server may still be shutting down.
func (s *Server) StopContext(ctx context.Context, mode Mode) (time.Duration, error) {
	p, err := s.running()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := p.Signal(mode.signal()); err != nil {
		return 0, err
	}
	select {
	case <-p.Done():
		return time.Since(began), nil
	case <-ctx.Done():
		return time.Since(began), fmt.Errorf("%s shutdown not finished after %s: %w",
			mode, time.Since(began).Round(time.Millisecond), context.Cause(ctx))
	}
}

// StartAgain starts a server that was stopped or killed, on the same port and data.
func (s *Server) StartAgain(t testing.TB) {
	t.Helper()
	if _, err := s.running(); err == nil {
		t.Fatal("start Postgres again: it is running")
	}
	if s.external != "" {
		t.Fatal("start Postgres again: it is not ours")
	}
	if err := s.run(); err != nil {
		t.Fatalf("start Postgres again: %v", err)
	}
}

// Restart stops the server, starts it again, and returns how long the stop took.
func (s *Server) Restart(t testing.TB, mode Mode) time.Duration {
	t.Helper()
	took := s.Stop(t, mode)
	s.StartAgain(t)
	return took
}

// Kill ends the postmaster and all its children with SIGKILL, as when the
// machine loses power. Since the kernel lives on, what was written survives.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if _, err := s.running(); err != nil {
		t.Fatalf("kill Postgres: %v", err)
	}
	s.kill()
}

// Crash kills one backend, whereupon the postmaster ends all others, recovers
// and lets clients in again by itself. It returns when it has.
func (s *Server) Crash(t testing.TB) {
	t.Helper()
	if _, err := s.running(); err != nil {
		t.Fatalf("crash Postgres: %v", err)
	}
	conn := s.Conn(t)
	var pid int
	if err := conn.QueryRow(context.Background(), "select pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatalf("crash Postgres: %v", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("crash Postgres: kill backend %d: %v", pid, err)
	}
	// The postmaster has noticed when our session, or what is left of it, is refused.
	_, _ = conn.Exec(context.Background(), "select pg_sleep(60)")
	if err := s.awaitReady(readyWithin); err != nil {
		t.Fatalf("crash Postgres: %v\n%s", err, s.logTail())
	}
}

// awaitReady waits until a session can be opened.
func (s *Server) awaitReady(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	p, err := s.running()
	if err != nil {
		return err
	}
	cfg, err := s.ConnConfig("postgres")
	if err != nil {
		return err
	}
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.Done():
			return fmt.Errorf("the server ended while starting: %w", p.Err())
		case <-ctx.Done():
			return fmt.Errorf("the server lets nobody in after %s: %w", limit, err)
		case <-retry.C:
		}
	}
}
