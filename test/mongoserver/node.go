package mongoserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/test/ground"
)

// node is one mongod.
type node struct {
	id   int
	dir  string
	port int

	mu      sync.Mutex
	process *ground.Process
	paused  bool
	client  *mongo.Client // our own, straight to the node; nil until needed
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *node) address() string { return "127.0.0.1:" + strconv.Itoa(n.port) }

// newNode takes a folder and a port.
func (s *Server) newNode(id int) (*node, error) {
	port, release, err := ground.Port()
	if err != nil {
		return nil, err
	}
	s.release = append(s.release, release)
	n := &node{id: id, dir: filepath.Join(s.dir, strconv.Itoa(id)), port: port}
	return n, os.MkdirAll(n.path("data"), 0o700)
}

// run starts the node's process and does not wait for it to be ready.
func (s *Server) run(n *node) error {
	log, err := os.OpenFile(n.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.program, s.arguments(n)...)
	cmd.Dir = n.dir
	cmd.Stdout, cmd.Stderr = log, log
	process, err := ground.StartProcess(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.process, n.paused = process, false
	n.mu.Unlock()
	return nil
}

// running returns the node's process, nil when it has ended.
func (n *node) running() *ground.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil || !n.process.Running() {
		return nil
	}
	return n.process
}

// answers reports whether the node runs and is not frozen.
func (n *node) answers() bool {
	running := n.running() != nil
	n.mu.Lock()
	defer n.mu.Unlock()
	return running && !n.paused
}

// awaitPort waits until the node takes connections. A driver that is refused
// would not look again for half a second.
func (n *node) awaitPort(ctx context.Context) error {
	p := n.running()
	if p == nil {
		return fmt.Errorf("node %d ended while starting", n.id)
	}
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.address())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.Done():
			return fmt.Errorf("node %d ended while starting: %w", n.id, p.Err())
		case <-ctx.Done():
			return fmt.Errorf("node %d takes no connections after %s: %w", n.id, readyWithin, err)
		case <-retry.C:
		}
	}
}

func (n *node) kill() {
	if p := n.running(); p != nil {
		_ = p.Signal(syscall.SIGKILL)
		<-p.Done()
	}
	n.forget()
}

// forget closes our client: a driver that lost its server looks for it again
// only every half second.
func (n *node) forget() {
	n.mu.Lock()
	client := n.client
	n.client = nil
	n.mu.Unlock()
	if client != nil {
		disconnect(client)
	}
}
