package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	defaultOrders = 30
	// clockAhead is how wrong the order service's clock is.
	clockAhead = 2 * time.Second
	// limit is how long the orders and payments may take.
	limit = 90 * time.Second
)

var errLate = fmt.Errorf("not all orders were paid within %s", limit)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second ctrl-C ends at once; the kernel then takes the children with us.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Getenv("EXAMPLES_ORDERS"), os.Getenv("EXAMPLES_STAY") != "", os.Stdout))
}

// run is the program; it returns the exit status.
func run(ctx context.Context, orders string, stay bool, out io.Writer) int {
	p := &printer{w: out}
	n, err := strconv.Atoi(orders)
	if orders == "" {
		n, err = defaultOrders, nil
	}
	if err != nil || n < 1 {
		p.line("EXAMPLES_ORDERS=%s is not a number of orders, 1 or more", orders)
		return 2
	}
	var s summary
	if stay {
		err = wait(ctx, p)
	} else {
		s, err = play(ctx, n, p)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		p.line("\nended; everything that was started has been stopped")
		return 0
	}
	if err != nil {
		p.line("\nfailed: %v", err)
	}
	for _, c := range s.complaints {
		p.line("wrong: %s", c)
	}
	if !stay {
		p.line("%s", s)
	}
	if err != nil || !s.clean() {
		return 1
	}
	return 0
}

// wait starts servers and relay and leaves the services to the reader.
func wait(ctx context.Context, p *printer) error {
	st, err := open(ctx, p)
	if err != nil {
		return err
	}
	defer st.close()
	for _, v := range st.variables() {
		name, value, _ := strings.Cut(v, "=")
		p.line("export %s='%s'", name, value)
	}
	p.line(`
Paste these lines into two other terminals. In one:    go run ./examples/payments
in the other:                                          go run ./examples/orders -n 10

Status page of the relay: http://%s/    Its log: %s
Servers and relay run until ctrl-C.`, st.listen, st.relay.log)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-st.relay.Done():
		return fmt.Errorf("walrelay ended by itself: %w", st.relay.ended())
	}
}

// open starts servers and relay.
func open(ctx context.Context, p *printer) (*stage, error) {
	p.line("walrelay examples: orders ─► walrelay ─► payments ─► walrelay, on Postgres 18 and a Kafka-protocol broker inside this program.")
	p.line("The first run fetches Postgres (15 MB). Nothing is installed, and nothing keeps running.\n")
	st, err := build(ctx, p)
	if err != nil {
		return nil, err
	}
	if err = st.prepare(); err == nil {
		err = st.startRelay(ctx)
	}
	if err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// play has n orders placed and paid, with two crashes in between.
func play(ctx context.Context, n int, p *printer) (s summary, err error) {
	st, err := open(ctx, p)
	if err != nil {
		return s, err
	}
	defer st.close()
	interrupted := ctx
	defer func() {
		if err != nil && interrupted.Err() == nil {
			st.keep = true
			p.line("\nThe logs are in %s", st.dir)
		}
	}()
	a := newAccount()
	r, err := newReader(st.brokers, a)
	if err != nil {
		return s, err
	}
	defer r.close()

	p.line("$ payments &\n$ orders -n %d -clock-ahead %s", n, clockAhead)
	if st.payer, err = st.start("payments"); err != nil {
		return s, err
	}
	every := min(200*time.Millisecond, 6*time.Second/time.Duration(n))
	if st.orders, err = st.start("orders", "-n", strconv.Itoa(n), "-every", every.String(), "-clock-ahead", clockAhead.String()); err != nil {
		return s, err
	}
	paying, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	err = st.crash(paying, n, a, r)
	if err == nil {
		err = r.until(paying, func() bool { return a.payments() == n }, st.payer, st.relay)
	}
	switch {
	case errors.Is(err, errLate): // the account says what is missing
		p.line("  %v", err)
	case err != nil:
		return s, err
	}
	if err := st.orders.wait(); err != nil {
		return s, err
	}
	// Only after clean stops is it certain that nothing follows.
	if err := errors.Join(st.payer.stop(), st.relay.stop()); err != nil {
		return s, err
	}
	ctx, cancel = context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := r.drain(ctx); err != nil {
		return s, err
	}
	b, err := st.books(ctx)
	if err != nil {
		return s, err
	}
	p.line("")
	s = a.judge(b)
	s.skipped = strings.Count(st.payer.text(), "duplicate order-")
	return s, nil
}

// forget makes the broker forget how far the payment service had come.
func forget(ctx context.Context, client *kgo.Client) error {
	admin := kadm.NewClient(client)
	// It still counts as a member, having gone without a word.
	left, err := admin.LeaveGroup(ctx, kadm.LeaveGroup("payments").InstanceIDs("payments-1"))
	if err == nil {
		err = left.Error()
	}
	if err != nil {
		return fmt.Errorf("leaving the group for it: %w", err)
	}
	deleted, err := admin.DeleteGroup(ctx, "payments")
	if err == nil {
		err = deleted.Err
	}
	if err != nil {
		return fmt.Errorf("deleting the group: %w", err)
	}
	return nil
}

// crash kills the payment service, and later the relay, in the middle of work, and
// starts them again.
func (st *stage) crash(ctx context.Context, n int, a *account, r *reader) error {
	if err := r.until(ctx, func() bool { return a.payments() >= n/3 }, st.payer, st.relay); err != nil {
		return err
	}
	st.payer.kill()
	if err := forget(ctx, r.client); err != nil {
		return err
	}
	st.p.line("  payments was killed after %d payments and its offsets were lost; it is started again and gets all orders once more", a.payments())
	var err error
	if st.payer, err = st.start("payments"); err != nil {
		return err
	}
	if err := r.until(ctx, func() bool { return a.payments() >= 2*n/3 }, st.payer, st.relay); err != nil {
		return err
	}
	st.relay.kill()
	st.p.line("  walrelay was killed after %d payments; it is started again", a.payments())
	return st.startRelay(ctx)
}

// books reads what the services wrote.
func (st *stage) books(ctx context.Context) (b books, err error) {
	b.payments = map[string]int{}
	if err := each(ctx, st.ordersURL, `select id, 1 from orders`, func(order string, _ int) { b.orders = append(b.orders, order) }); err != nil {
		return b, err
	}
	return b, each(ctx, st.paidURL, `select order_id, count(*)::int from payments group by 1`, func(order string, n int) { b.payments[order] = n })
}

func each(ctx context.Context, url, query string, row func(string, int)) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return err
	}
	var text string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&text, &n}, func() error {
		row(text, n)
		return nil
	})
	return err
}
