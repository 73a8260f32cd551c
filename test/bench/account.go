package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// spent is the CPU time that the processes below this one have used so far, by the
// names of their programs. What a process's ended children used counts as its own.
type spent map[string]time.Duration

func spentSoFar() spent {
	type process struct {
		parent int
		name   string
		used   time.Duration
	}
	all := map[int]process{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it is gone
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
		f := strings.Fields(string(b[end+1:]))
		p := process{name: string(b[open+1 : end])}
		p.parent, _ = strconv.Atoi(f[1])
		for _, ticks := range f[11:15] { // utime, stime, and those of children
			n, _ := strconv.ParseInt(ticks, 10, 64)
			p.used += time.Duration(n) * tick
		}
		all[pid] = p
	}
	sum := spent{}
	for pid, p := range all {
		for up := p.parent; up > 1; up = all[up].parent {
			if up == os.Getpid() && pid != up {
				sum[p.name] += p.used
				break
			}
		}
	}
	return sum
}

// since is what a program used between two looks.
func (s spent) since(before spent, name string) time.Duration { return s[name] - before[name] }
