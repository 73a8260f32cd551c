package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// printer writes whole lines from several goroutines.
type printer struct {
	mu      sync.Mutex
	w       io.Writer
	arrived int
}

func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, format+"\n", args...)
}

// step prints what was done and what came of it, aligned.
func (p *printer) step(what, result string, began time.Time) {
	p.line("  %-12s %-58s %5.1f s", what, result, time.Since(began).Seconds())
}

// event prints one event that arrived.
func (p *printer) event(e arrival, took time.Duration, remark string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.arrived == 0 {
		fmt.Fprintf(p.w, "  %4s  %8s  %-9s  %-10s  %-13s  %s\n", "", "latency", "partition", "key", "type", "payload")
	}
	p.arrived++
	fmt.Fprintf(p.w, "  %4d  %5.1f ms  %d @ %-5d  %-10s  %-13s  %s%s\n",
		p.arrived, millis(took), e.partition, e.offset, e.key, e.kind, e.payload, remark)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
