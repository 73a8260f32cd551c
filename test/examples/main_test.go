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

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(s.b.String())
}

// Real Postgres, the real relay and services, killed in between; the order
// service's clock is ahead, so that without the inbox each payment would be stamped
// before its order.
func TestEveryOrderIsPaidOnceAndAfterItsOrderThoughServiceAndRelayCrash(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
	defer cancel()
	var s screen
	code := run(ctx, "12", false, &s)
	text := s.String()
	last := text[strings.LastIndex(text, "\n")+1:]
	if code != 0 || !regexp.MustCompile(`^examples: orders=12 paid=12 missing=0 doubled=0 before_their_order=0 redelivered=\d+ skipped=([4-9]|\d\d)$`).MatchString(last) {
		t.Errorf("exit status %d:\n%s", code, text)
	}
	if n := strings.Count(text, "was killed after"); n != 2 {
		t.Errorf("%d crashes, want 2:\n%s", n, text)
	}
}

func TestServersStayUpUntilTheyAreEnded(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithTimeout(t.Context(), 2*time.Minute)
	defer end()
	s := screen{when: func(text string) {
		if strings.Contains(text, "until ctrl-C") {
			end()
		}
	}}
	if code := run(ctx, "", true, &s); code != 0 {
		t.Errorf("exit status %d", code)
	}
	for _, want := range []string{"export ORDERS_DATABASE_URL='", "export PAYMENTS_DATABASE_URL='", "export KAFKA_BROKERS='", "go run ./examples/payments", "has been stopped"} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, s.String())
		}
	}
}

func TestNumberOfOrdersThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, orders := range []string{"many", "0", "-1"} {
		var s screen
		if code := run(t.Context(), orders, false, &s); code != 2 {
			t.Errorf("EXAMPLES_ORDERS=%s exits %d, want 2", orders, code)
		}
	}
}
