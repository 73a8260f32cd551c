package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/walrelay/walrelay/test/ground"
)

// stage is everything that runs: servers, broker, the relay.
type stage struct {
	p          *printer
	dir        string
	db         database
	broker     *kfake.Cluster
	brokers    []string
	program    string
	listen     string
	configPath string
	logPath    string
	relay      *ground.Process
	keep       bool // leave the folder with the log behind
	release    []func()
}

// build fetches and starts the servers and compiles walrelay, both at the same
// time. After an error everything is closed already.
func build(ctx context.Context, db database, p *printer) (st *stage, err error) {
	st = &stage{p: p, db: db}
	defer func() {
		if err != nil {
			st.close()
			st = nil
		}
	}()
	if st.dir, err = os.MkdirTemp("", "walrelay-demo-"); err != nil {
		return st, err
	}
	st.configPath, st.logPath = filepath.Join(st.dir, "walrelay.yaml"), filepath.Join(st.dir, "walrelay.log")
	port, release, err := ground.Port()
	if err != nil {
		return st, err
	}
	st.release = append(st.release, release)
	st.listen = fmt.Sprintf("127.0.0.1:%d", port)

	var wg sync.WaitGroup
	var dbErr, goErr error
	wg.Go(func() { dbErr = st.startDatabase() })
	wg.Go(func() { goErr = st.compile(ctx) })
	wg.Wait()
	if err := errors.Join(dbErr, goErr); err != nil || ctx.Err() != nil {
		return st, errors.Join(err, ctx.Err())
	}
	return st, st.startBroker()
}

func (st *stage) startDatabase() error {
	began := time.Now()
	what, err := st.db.start()
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(st.db.title(), " ")
	st.p.step(name, what, began)
	return nil
}

func (st *stage) compile(ctx context.Context) error {
	began := time.Now()
	root, err := ground.RepositoryRoot()
	if err != nil {
		return err
	}
	st.program = filepath.Join(st.dir, "walrelay")
	cmd := exec.CommandContext(ctx, goCommand(), "build", "-o", st.program, "./cmd/walrelay")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building walrelay: %w\n%s", err, out)
	}
	st.p.step("walrelay", "built from ./cmd/walrelay", began)
	return nil
}

// goCommand is the go command that runs us, where it can be known.
func goCommand() string {
	if path := os.Getenv("GO"); path != "" {
		return path
	}
	if root := os.Getenv("GOROOT"); root != "" {
		if path := filepath.Join(root, "bin", "go"); exec.Command(path, "version").Run() == nil {
			return path
		}
	}
	return "go"
}

func (st *stage) startBroker() (err error) {
	began := time.Now()
	if st.broker, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic)); err != nil {
		return fmt.Errorf("starting the broker: %w", err)
	}
	st.brokers = st.broker.ListenAddrs()
	st.p.step("broker", fmt.Sprintf("%s, topic %s with %d partitions", strings.Join(st.brokers, ","), topic, partitions), began)
	return nil
}

// close stops everything, in reverse order.
func (st *stage) close() {
	if st.relay != nil && st.relay.Running() {
		_ = st.relay.Signal(syscall.SIGKILL)
		<-st.relay.Done()
	}
	if st.broker != nil {
		st.broker.Close()
	}
	st.db.close()
	for _, release := range st.release {
		release()
	}
	switch {
	case st.keep:
		_ = os.Remove(st.program)
	case st.dir != "":
		_ = os.RemoveAll(st.dir)
	}
}

// keepLog keeps the relay's files for whoever looks into a failure.
func (st *stage) keepLog() string {
	st.keep = true
	return st.logPath
}

func (st *stage) logTail() string {
	b, err := os.ReadFile(st.logPath)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return "    " + strings.Join(lines[max(0, len(lines)-25):], "\n    ")
}
