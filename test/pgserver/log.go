package pgserver

import (
	"os"
	"path/filepath"
	"strings"
)

// LogPath is the file of the server's log, over all its restarts.
func (s *Server) LogPath() string { return filepath.Join(s.dir, "log") }

// Log is what the server has logged so far, replication commands included.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.LogPath())
	if err != nil {
		return ""
	}
	return string(b)
}

func (s *Server) logTail() string {
	const keep = 40
	lines := strings.Split(strings.TrimSpace(s.Log()), "\n")
	return strings.Join(lines[max(0, len(lines)-keep):], "\n")
}
