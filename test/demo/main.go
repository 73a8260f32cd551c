package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const (
	defaultEvents = 50
	partitions    = 6
	topic         = "demo.orders"
	// arriveWithin is how long what was committed may take to arrive after the last commit.
	arriveWithin = 20 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second ctrl-C ends at once; the kernel then takes the children with us.
	context.AfterFunc(ctx, stop)
	var db database = &postgres{}
	if len(os.Args) > 1 && os.Args[1] == "mongo" {
		db = &mongo{}
	}
	os.Exit(run(ctx, db, os.Getenv("DEMO_EVENTS"), os.Stdout))
}

// run is the program; it returns the exit status. The last line is printed
// whatever happens, after everything was stopped.
func run(ctx context.Context, db database, events string, out io.Writer) int {
	p := &printer{w: out}
	total, err := strconv.Atoi(events)
	if events == "" {
		total, err = defaultEvents, nil
	}
	if err != nil || total < 1 {
		p.line("DEMO_EVENTS=%s is not a number of events, 1 or more", events)
		return 2
	}
	t := newTally()
	err = demo(ctx, db, total, t, p)
	sum := t.summary()
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		p.line("\ninterrupted; everything that was started has been stopped")
		err = nil
	case err != nil:
		p.line("\nfailed: %v", err)
	}
	for _, s := range sum.complaints {
		p.line("wrong: %s", s)
	}
	p.line("%s", sum)
	if err != nil || !sum.clean() {
		return 1
	}
	return 0
}

// demo sets the stage, plays, and clears it away again.
func demo(ctx context.Context, db database, total int, t *tally, p *printer) (err error) {
	began := time.Now()
	p.line("walrelay demo: %s ─► walrelay ─► a Kafka-protocol broker inside this program.", db.title())
	p.line("The first run fetches %s. Nothing is installed, and nothing keeps running.\n", db.fetches())
	st, err := build(ctx, db, p)
	if err != nil {
		return err
	}
	defer st.close()
	if err := st.start(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil && ctx.Err() == nil {
			p.line("\nThe end of the relay's log, %s:\n%s", st.keepLog(), st.logTail())
		}
	}()
	p.line("\nall of it ready after %.1f s; %d events in transactions of one and several rows, with rollbacks and savepoints:\n",
		time.Since(began).Seconds(), total)

	reader, err := newReader(st.brokers, t, p)
	if err != nil {
		return err
	}
	defer reader.close()
	writing, stopWriting := context.WithCancel(ctx)
	defer stopWriting()
	go func() {
		select {
		case <-st.relayEnded(): // nothing would arrive any more
			stopWriting()
		case <-writing.Done():
		}
	}()
	if err := write(writing, st.db, total, t); err != nil {
		return err
	}
	// What is committed has to arrive, also after ctrl-C.
	if err := reader.until(t.complete, arriveWithin, st.relayEnded()); err != nil {
		return err
	}
	// A clean stop confirms everything; only after it is it certain that no
	// duplicate follows.
	code, took, err := st.stopRelay()
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("walrelay exited %d on a clean stop", code)
	}
	if err := reader.drain(); err != nil {
		return err
	}
	p.line("\nwalrelay stopped cleanly in %d ms. Rolled back, and not published: %d events in %d transactions and %d savepoints.",
		took.Milliseconds(), t.undone.events, t.undone.transactions, t.undone.savepoints)
	p.line("Times are from just before COMMIT was sent to the consumer's hand; the broker is inside this program and costs next to nothing.")
	return ctx.Err()
}
