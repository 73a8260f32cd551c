package kafkaserver

import (
	"syscall"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/ground"
)

// The methods below act on the nodes with the numbers given, from 1; on all
// nodes when none is given.

// Pause freezes nodes: connections stay open and silent, as when a machine hangs.
func (s *Server) Pause(t testing.TB, nodes ...int) {
	t.Helper()
	s.signal(t, syscall.SIGSTOP, nodes)
}

// Continue ends a Pause.
func (s *Server) Continue(t testing.TB, nodes ...int) {
	t.Helper()
	s.signal(t, syscall.SIGCONT, nodes)
}

// Stop shuts nodes down in good order and returns how long that took.
func (s *Server) Stop(t testing.TB, nodes ...int) time.Duration {
	t.Helper()
	began := time.Now()
	var processes []*ground.Process
	for _, n := range s.chosen(t, nodes) {
		processes = append(processes, n.running())
	}
	s.signal(t, syscall.SIGTERM, nodes)
	for i, n := range s.chosen(t, nodes) {
		select {
		case <-processes[i].Done():
		case <-time.After(60 * time.Second):
			t.Fatalf("Kafka node %d still runs 60 s after SIGTERM\n%s", n.id, s.logTail())
		}
	}
	return time.Since(began)
}

// Kill ends nodes with SIGKILL.
func (s *Server) Kill(t testing.TB, nodes ...int) {
	t.Helper()
	for _, n := range s.chosen(t, nodes) {
		n.kill()
	}
}

// StartAgain starts nodes that were stopped or killed, on the same ports and
// data, and waits until they are ready.
func (s *Server) StartAgain(t testing.TB, nodes ...int) {
	t.Helper()
	for _, n := range s.chosen(t, nodes) {
		if n.running() != nil {
			t.Fatalf("start Kafka node %d again: it is running", n.id)
		}
		if err := s.run(n); err != nil {
			t.Fatalf("start Kafka node %d again: %v", n.id, err)
		}
	}
	if err := s.awaitReady(); err != nil {
		t.Fatalf("start Kafka again: %v", err)
	}
}

func (s *Server) signal(t testing.TB, sig syscall.Signal, nodes []int) {
	t.Helper()
	for _, n := range s.chosen(t, nodes) {
		p := n.running()
		if p == nil {
			t.Fatalf("send %s to Kafka node %d: it is not running", sig, n.id)
		}
		if err := p.Signal(sig); err != nil {
			t.Fatalf("send %s to Kafka node %d: %v", sig, n.id, err)
		}
	}
}

func (s *Server) chosen(t testing.TB, nodes []int) []*node {
	t.Helper()
	if s.external != nil {
		t.Fatal("the Kafka server is not ours to control")
	}
	if len(nodes) == 0 {
		return s.nodes
	}
	var chosen []*node
	for _, id := range nodes {
		chosen = append(chosen, s.nodes[id-1])
	}
	return chosen
}

// alive counts the nodes whose process runs.
func (s *Server) alive() int {
	count := 0
	for _, n := range s.nodes {
		if n.running() != nil {
			count++
		}
	}
	return count
}

// ended returns a node whose process has ended, if all have.
func (s *Server) ended() *node {
	if s.external != nil || s.alive() > 0 {
		return nil
	}
	return s.nodes[0]
}
