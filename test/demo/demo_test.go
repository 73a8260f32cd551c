package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// screen is what a person would see.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
	// when is called after each write with what stands there so far.
	when func(text string)
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.b.Write(p)
	if s.when != nil {
		s.when(s.b.String())
	}
	return n, err
}

func (s *screen) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimRight(s.b.String(), "\n"), "\n")
}

var lastLine = regexp.MustCompile(`^demo: events=(\d+) lost=0 duplicates=0 out_of_order=0 p50_ms=\d+\.\d p99_ms=\d+\.\d$`)

func TestDemoShowsEveryEventAndEndsWithItsAccount(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var s screen
	if code := run(ctx, &postgres{}, "25", &s); code != 0 {
		t.Fatalf("exit status %d:\n%s", code, strings.Join(s.lines(), "\n"))
	}
	lines := s.lines()
	if m := lastLine.FindStringSubmatch(lines[len(lines)-1]); m == nil || m[1] != "25" {
		t.Errorf("last line %q", lines[len(lines)-1])
	}
	events := regexp.MustCompile(`^ +\d+ +\d+\.\d ms +\d @ \d+ +order-\d +Order`)
	shown, accounts := 0, 0
	for _, l := range lines {
		if events.MatchString(l) {
			shown++
		}
		if strings.HasPrefix(l, "demo: ") {
			accounts++
		}
	}
	if shown != 25 || accounts != 1 {
		t.Errorf("%d lines with an event and %d accounts, want 25 and 1:\n%s", shown, accounts, strings.Join(lines, "\n"))
	}
}

func TestDemoThatIsInterruptedAccountsForWhatWasCommitted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithTimeout(t.Context(), 2*time.Minute)
	defer interrupt()
	s := screen{when: func(text string) {
		if strings.Count(text, " ms  ") >= 5 {
			interrupt()
		}
	}}
	if code := run(ctx, &postgres{}, "100000", &s); code != 0 {
		t.Fatalf("exit status %d:\n%s", code, strings.Join(s.lines(), "\n"))
	}
	lines := s.lines()
	if !lastLine.MatchString(lines[len(lines)-1]) || !strings.Contains(lines[len(lines)-2], "interrupted") {
		t.Errorf("the end is\n%s", strings.Join(lines[len(lines)-2:], "\n"))
	}
}

func TestDemoRefusesANumberThatIsNone(t *testing.T) {
	t.Parallel()
	for _, events := range []string{"many", "0", "-1"} {
		var s screen
		if code := run(t.Context(), &postgres{}, events, &s); code != 2 {
			t.Errorf("DEMO_EVENTS=%s exits %d, want 2", events, code)
		}
	}
}

func TestDemoOnMongoShowsEveryEventAndEndsWithItsAccount(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var s screen
	if code := run(ctx, &mongo{}, "25", &s); code != 0 {
		t.Fatalf("exit status %d:\n%s", code, strings.Join(s.lines(), "\n"))
	}
	lines := s.lines()
	if m := lastLine.FindStringSubmatch(lines[len(lines)-1]); m == nil || m[1] != "25" {
		t.Errorf("last line %q", lines[len(lines)-1])
	}
}
