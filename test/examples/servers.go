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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/walrelay/walrelay/test/ground"
	"github.com/walrelay/walrelay/test/pgserver"
)

const (
	ordersTopic, paymentsTopic = "shop.orders", "shop.payments"
	partitions                 = 6
)

// stage is everything that runs.
type stage struct {
	p      *printer
	dir    string
	keep   bool // leave the logs behind
	listen string

	postgres             *pgserver.Server
	ordersURL, paidURL   string
	broker               *kfake.Cluster
	brokers              string
	relay, payer, orders *process
	release              func()
}

// build starts the servers and compiles the programs. After an error everything
// is closed already.
func build(ctx context.Context, p *printer) (st *stage, err error) {
	st = &stage{p: p}
	defer func() {
		if err != nil {
			st.close()
			st = nil
		}
	}()
	if st.dir, err = os.MkdirTemp("", "walrelay-examples-"); err != nil {
		return st, err
	}
	port, release, err := ground.Port()
	if err != nil {
		return st, err
	}
	st.release, st.listen = release, fmt.Sprintf("127.0.0.1:%d", port)
	var wg sync.WaitGroup
	var pgErr, goErr error
	wg.Go(func() { pgErr = st.startPostgres(ctx) })
	wg.Go(func() { goErr = st.compile(ctx) })
	wg.Wait()
	if err := errors.Join(pgErr, goErr, ctx.Err()); err != nil {
		return st, err
	}
	return st, st.startBroker()
}

func (st *stage) startPostgres(ctx context.Context) (err error) {
	began := time.Now()
	if st.postgres, err = pgserver.Open(pgserver.Options{Version: pgserver.V18}); err != nil {
		return fmt.Errorf("starting Postgres: %w", err)
	}
	conn, err := pgx.Connect(ctx, st.postgres.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, name := range []string{"orders", "payments"} {
		if _, err := conn.Exec(ctx, "create database "+name); err != nil {
			return err
		}
	}
	st.ordersURL, st.paidURL = st.postgres.URL("orders"), st.postgres.URL("payments")
	st.p.step("Postgres", fmt.Sprintf("%s on 127.0.0.1:%d, databases orders and payments", st.postgres.Version().Release(), st.postgres.Port()), began)
	return nil
}

func (st *stage) compile(ctx context.Context) error {
	began := time.Now()
	root, err := ground.RepositoryRoot()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, goCommand(), "build", "-o", st.dir+string(filepath.Separator), "./cmd/walrelay", "./examples/orders", "./examples/payments")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, out)
	}
	st.p.step("programs", "built from ./cmd/walrelay, ./examples/orders, ./examples/payments", began)
	return nil
}

// goCommand is the go command that runs us, where it can be known.
func goCommand() string {
	if path := os.Getenv("GO"); path != "" {
		return path
	}
	return "go"
}

func (st *stage) startBroker() (err error) {
	began := time.Now()
	if st.broker, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, ordersTopic, paymentsTopic)); err != nil {
		return fmt.Errorf("starting the broker: %w", err)
	}
	st.brokers = strings.Join(st.broker.ListenAddrs(), ",")
	st.p.step("broker", fmt.Sprintf("%s, topics %s and %s", st.brokers, ordersTopic, paymentsTopic), began)
	return nil
}

// close stops everything, in reverse order.
func (st *stage) close() {
	for _, p := range []*process{st.orders, st.payer, st.relay} {
		if p != nil {
			p.kill()
		}
	}
	if st.broker != nil {
		st.broker.Close()
	}
	if st.postgres != nil {
		st.postgres.Close()
	}
	if st.release != nil {
		st.release()
	}
	if st.dir != "" && !st.keep {
		_ = os.RemoveAll(st.dir)
	}
}
