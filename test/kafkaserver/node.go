package kafkaserver

import (
	"crypto/rand"
	_ "embed" // the logging configuration
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/walrelay/walrelay/test/ground"
)

//go:embed log4j2.properties
var logging []byte

// node is one process, broker and controller in one.
type node struct {
	id                           int
	dir                          string
	client, internal, controller int // ports

	mu      sync.Mutex
	process *ground.Process
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *node) data() string { return n.path("data") }

// newNode takes a folder and three ports.
func (s *Server) newNode(id int) (*node, error) {
	n := &node{id: id, dir: filepath.Join(s.dir, strconv.Itoa(id))}
	for _, port := range []*int{&n.client, &n.internal, &n.controller} {
		p, release, err := ground.Port()
		if err != nil {
			return nil, err
		}
		*port, s.release = p, append(s.release, release)
	}
	return n, os.Mkdir(n.dir, 0o700)
}

// prepare writes the node's files and formats its data folder.
func (s *Server) prepare(n *node) error {
	files := map[string][]byte{"server.properties": []byte(s.properties(n)), "log4j2.properties": logging}
	if s.opts.TLS {
		cert, key, err := s.ca.Issue("localhost")
		if err != nil {
			return err
		}
		files["keystore.pem"] = slices.Concat(key, cert)
		files["ca.pem"] = s.ca.PEM
	}
	for name, content := range files {
		if err := os.WriteFile(n.path(name), content, 0o600); err != nil {
			return err
		}
	}
	return s.format(n)
}

// clusterID is the same for all: nothing here tells clusters apart by it.
const clusterID = "4L6g3nShT-eMCtK--X86sw"

// bootstrap is the snapshot that the first start reads: feature levels, and
// credentials where there are any. It names neither node nor ports.
const bootstrap = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"

// format makes the data folder. Kafka's tool takes a second for it, so what it
// makes is kept and copied, unless there are credentials to go in.
func (s *Server) format(n *node) error {
	if len(s.opts.Users) > 0 {
		args := []string{"format", "-t", clusterID, "-c", n.path("server.properties")}
		for _, user := range slices.Sorted(maps.Keys(s.opts.Users)) {
			for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
				args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, user, s.opts.Users[user]))
			}
		}
		return s.storageTool(n, args...)
	}
	scratch, err := ground.Scratch()
	if err != nil {
		return err
	}
	unlock, err := ground.Lock(filepath.Join(scratch, "kafka-format.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	kept := filepath.Join(scratch, "kafka-"+release+"-bootstrap")
	snapshot, err := os.ReadFile(kept)
	if err != nil {
		if err := s.storageTool(n, "format", "-t", clusterID, "-c", n.path("server.properties")); err != nil {
			return err
		}
		snapshot, err := os.ReadFile(filepath.Join(n.data(), bootstrap))
		if err != nil {
			return err
		}
		if err := os.WriteFile(kept+".new", snapshot, 0o600); err != nil {
			return err
		}
		return os.Rename(kept+".new", kept)
	}
	target := filepath.Join(n.data(), bootstrap)
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	var directory [16]byte
	_, _ = rand.Read(directory[:])
	meta := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\n",
		clusterID, n.id, base64.RawURLEncoding.EncodeToString(directory[:]))
	if err := os.WriteFile(filepath.Join(n.data(), "meta.properties"), []byte(meta), 0o600); err != nil {
		return err
	}
	return os.WriteFile(target, snapshot, 0o600)
}

func (s *Server) storageTool(n *node, args ...string) error {
	args = append([]string{"-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", classPath(s.libs), "kafka.tools.StorageTool"}, args...)
	if out, err := exec.Command(s.java, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("format the data folder of node %d: %w\n%s", n.id, err, out)
	}
	return nil
}

// run starts the node's process and does not wait for it to be ready.
func (s *Server) run(n *node) error {
	log, err := os.OpenFile(n.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	args := []string{"-Xms64m", fmt.Sprintf("-Xmx%dm", s.opts.HeapMB), "-XX:+UseSerialGC", "-Xshare:auto"}
	if !s.opts.ServerClass {
		args = append(args, "-XX:TieredStopAtLevel=1")
	}
	args = append(args, "-Dlog4j2.configurationFile="+n.path("log4j2.properties"),
		"-cp", classPath(s.libs), "kafka.Kafka", n.path("server.properties"))
	cmd := exec.Command(s.java, args...)
	cmd.Dir = n.dir
	cmd.Stdout, cmd.Stderr = log, log
	process, err := ground.StartProcess(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	n.mu.Lock()
	n.process = process
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

func (n *node) kill() {
	if p := n.running(); p != nil {
		_ = p.Signal(syscall.SIGKILL)
		<-p.Done()
	}
}

func (n *node) log() string {
	b, err := os.ReadFile(n.path("log"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b)) + "\n"
}
