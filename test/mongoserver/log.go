package mongoserver

import (
	"fmt"
	"os"
	"strings"
)

// Log is what the nodes have logged so far, over all their restarts.
func (s *Server) Log() string {
	var b strings.Builder
	for _, n := range s.nodes {
		b.WriteString(n.log())
	}
	return b.String()
}

func (n *node) log() string {
	b, err := os.ReadFile(n.path("log"))
	if err != nil {
		return ""
	}
	return string(b)
}

// logTail is the end of each node's log. A line of mongod's can hold a whole
// document, so long ones are cut.
func (s *Server) logTail() string {
	const keep, width = 30, 500
	var b strings.Builder
	for _, n := range s.nodes {
		fmt.Fprintf(&b, "node %d:\n", n.id)
		lines := strings.Split(strings.TrimSpace(n.log()), "\n")
		for _, line := range lines[max(0, len(lines)-keep):] {
			if len(line) > width {
				line = line[:width] + " …"
			}
			fmt.Fprintln(&b, line)
		}
	}
	return b.String()
}
