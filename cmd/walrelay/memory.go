package main

import (
	"io"
	"os"
	"runtime/debug"

	"github.com/walrelay/walrelay/config"
)

// tuneMemory gives the garbage collector a soft limit that fits the budget of
// events in flight or waiting for their place, unless the operator has set GOMEMLIMIT: what is in flight is
// counted exactly, and the rest of the program is small.
func tuneMemory(c *config.Config) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := int64(64 << 20)
	for _, s := range c.Sources {
		limit += int64(s.Value.Postgres.InFlightBytes + s.Value.Mongo.InFlightBytes)
		if order := c.OrderOptions(); order != nil {
			// What waits for its place is counted with what it costs beside its bytes; a heap
			// that lives at its limit would collect garbage without end.
			limit += order.BufferBytes + order.BufferBytes/2
		}
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
