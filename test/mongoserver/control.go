package mongoserver

import (
	"context"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/ground"
)

// The methods below act on the nodes with the numbers given, from 0; on all
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
	for _, n := range s.chosen(nodes) {
		processes = append(processes, n.running())
	}
	s.signal(t, syscall.SIGTERM, nodes)
	for i, n := range s.chosen(nodes) {
		select {
		case <-processes[i].Done():
			n.forget()
		case <-time.After(readyWithin):
			t.Fatalf("MongoDB node %d still runs %s after SIGTERM\n%s", n.id, readyWithin, s.logTail())
		}
	}
	return time.Since(began)
}

// Kill ends nodes with SIGKILL.
func (s *Server) Kill(t testing.TB, nodes ...int) {
	t.Helper()
	for _, n := range s.chosen(nodes) {
		if n.running() == nil {
			t.Fatalf("kill MongoDB node %d: it is not running", n.id)
		}
		n.kill()
	}
}

// StartAgain starts nodes that were stopped or killed, on the same ports and
// data, and waits until they have joined and there is a primary.
func (s *Server) StartAgain(t testing.TB, nodes ...int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	for _, n := range s.chosen(nodes) {
		if n.running() != nil {
			t.Fatalf("start MongoDB node %d again: it is running", n.id)
		}
		if err := s.run(n); err != nil {
			t.Fatalf("start MongoDB node %d again: %v", n.id, err)
		}
	}
	for _, n := range s.chosen(nodes) {
		if err := n.awaitPort(ctx); err != nil {
			t.Fatalf("start MongoDB again: %v\n%s", err, s.logTail())
		}
	}
	if err := s.awaitMembers(ctx); err != nil {
		t.Fatalf("start MongoDB again: %v\n%s", err, s.logTail())
	}
}

// Primary waits for a primary among the nodes that answer and returns its number.
func (s *Server) Primary(t testing.TB) int {
	t.Helper()
	return s.primaryOtherThan(t, -1)
}

func (s *Server) primaryOtherThan(t testing.TB, old int) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	found := -1
	if err := poll(ctx, "a primary", func(ctx context.Context) (bool, error) {
		found = s.primary(ctx)
		return found >= 0 && found != old, nil
	}); err != nil {
		t.Fatalf("%v\n%s", err, s.logTail())
	}
	return found
}

// StepDown has the primary hand over, waits for the next one and returns its
// number. The old one lives on as a secondary and stands for no election for
// 10 s. The one node of a set is without a primary for a second and then elects
// itself again.
func (s *Server) StepDown(t testing.TB) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	old := s.Primary(t)
	client, err := s.admin(s.nodes[old], false)
	if err != nil {
		t.Fatalf("step down: %v", err)
	}
	away, catchUp, other := 10, 5, old
	if len(s.nodes) == 1 || s.opts.Arbiter && len(s.nodes) == 2 {
		away, catchUp, other = 1, 0, -1
	}
	command := bson.D{{Key: "replSetStepDown", Value: away}, {Key: "secondaryCatchUpPeriodSecs", Value: catchUp}, {Key: "force", Value: true}}
	if err := client.Database("admin").RunCommand(ctx, command).Err(); err != nil {
		t.Fatalf("step down: %v", err)
	}
	return s.primaryOtherThan(t, other)
}

func (s *Server) signal(t testing.TB, sig syscall.Signal, nodes []int) {
	t.Helper()
	for _, n := range s.chosen(nodes) {
		p := n.running()
		if p == nil {
			t.Fatalf("send %s to MongoDB node %d: it is not running", sig, n.id)
		}
		if err := p.Signal(sig); err != nil {
			t.Fatalf("send %s to MongoDB node %d: %v", sig, n.id, err)
		}
		n.mu.Lock()
		n.paused = sig == syscall.SIGSTOP
		n.mu.Unlock()
	}
}

func (s *Server) chosen(nodes []int) []*node {
	if len(nodes) == 0 {
		return s.nodes
	}
	var chosen []*node
	for _, i := range nodes {
		chosen = append(chosen, s.nodes[i])
	}
	return chosen
}

// BecomeReplicaSet restarts a standalone server as the one member of a replica set, on the same
// port and data, as an operator would. URL is another one afterwards; the old one works, too.
func (s *Server) BecomeReplicaSet(t testing.TB) {
	t.Helper()
	if !s.opts.Standalone {
		t.Fatal("the server is a replica set already")
	}
	s.Stop(t)
	s.opts.Standalone = false
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	n := s.nodes[0]
	err := s.run(n)
	if err == nil {
		err = n.awaitPort(ctx)
	}
	if err == nil {
		err = s.initiate(ctx)
	}
	if err == nil {
		err = s.awaitMembers(ctx)
	}
	if err != nil {
		t.Fatalf("make a replica set: %v\n%s", err, s.logTail())
	}
}
