package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// printer writes whole lines from several goroutines.
type printer struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// step prints what was done and what came of it, aligned.
func (p *printer) step(what, result string, began time.Time) {
	p.line("  %-10s %-72s %5.1f s", what, result, time.Since(began).Seconds())
}
