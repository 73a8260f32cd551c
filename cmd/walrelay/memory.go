package main

import (
	"io"
	"os"
	"runtime/debug"

	"github.com/walrelay/walrelay/config"
)

// tuneMemory gives the garbage collector a soft limit that fits the budget of
// events in flight, unless the operator has set GOMEMLIMIT: what is in flight is
// counted exactly, and the rest of the program is small.
func tuneMemory(c *config.Config) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := int64(64 << 20)
	for _, s := range c.Sources {
		limit += int64(s.Value.Postgres.InFlightBytes)
	}
	debug.SetMemoryLimit(limit)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
