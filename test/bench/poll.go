package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/rig"
)

// poller is a way to work off a table. The bare loop of the same name takes as
// many rows at a time as walrelay does.
type poller struct {
	name, after, claim string
	batch              int
}

var pollers = []poller{
	{name: "poll row", after: "mark", claim: "row", batch: 500},
	{name: "poll lease", after: "mark", claim: "lease", batch: 5000},
	{name: "poll delete", after: "delete", claim: "lease", batch: 5000},
}

// stock is a table of pending rows that can be restored.
type stock struct {
	house *rig.House
	conn  *pgx.Conn
	rows  int
}

// polls runs one way to work off a table, or all of them, beside their bare loops.
func (s *site) polls(t *crew, name string) (results []result) {
	within(t, func(t *crew) {
		s.durable(t)
		st := s.fill(t)
		within(t, func(t *crew) { s.workedOff(t, st, pollers[0], "warm-up", s.poll) })
		for _, p := range pollers {
			if name != "poll" && name != p.name {
				continue
			}
			var bare, kafka, relay []drained
			for round := range s.rounds {
				what := fmt.Sprintf("round %d", round+1)
				within(t, func(t *crew) { bare = append(bare, s.workedOff(t, st, p, what, (*stock).loop)) })
				within(t, func(t *crew) { kafka = append(kafka, s.workedOff(t, st, p, what, s.loopWithKafka)) })
				within(t, func(t *crew) { relay = append(relay, s.workedOff(t, st, p, what, s.poll)) })
			}
			results = append(results, sum("bare loop, "+p.name, bare, bare), sum("bare + kafka, "+p.name, kafka, bare), sum(p.name, relay, bare))
		}
	})
	return results
}

// fill makes a database with an outbox of pending rows, and a copy of them.
func (s *site) fill(t *crew) *stock {
	h := rig.NewHouse(t, s.pg, s.kafka.Brokers(), "unused")
	h.Postgres, h.Source = "capture: poll\ncheck_interval: 10s\n", "after_publish: mark\n"
	h.Init(t)
	st := &stock{house: h, conn: s.pg.Conn(t, h.Database), rows: s.pollRows}
	for from := 1; from <= st.rows; from += perTx {
		st.exec(t, workloads["jsonb"].write, from, min(from+perTx-1, st.rows))
	}
	st.exec(t, `create table stock as table outbox`)
	return st
}

func (st *stock) exec(t *crew, sql string, args ...any) {
	if _, err := st.conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%.60s…: %v", sql, err)
	}
}

// restore makes all rows pending again, as if they had just been written.
func (st *stock) restore(t *crew) {
	for _, sql := range []string{`truncate outbox, walrelay.lease, walrelay.source`, `insert into outbox select * from stock`} {
		st.exec(t, sql)
	}
	tidy(t, st.conn)
}

// workedOff runs one way on the whole stock, and looks that nothing is left.
func (s *site) workedOff(t *crew, st *stock, p poller, what string, run func(*stock, *crew, poller) drained) drained {
	st.restore(t)
	before := spentSoFar()
	d := run(st, t, p)
	used := spentSoFar()
	checkTable(t, st.conn, p.after, st.rows)
	t.Logf("%-12s %-8s %8.0f rows/s, %.2f µs per row (Postgres %.2f, Kafka %.2f), %d ms to start, peak %.0f MiB", p.name, what,
		float64(d.rows)/d.took.Seconds(), micros(d.cpu, d.rows), micros(used.since(before, "postgres"), d.rows), micros(used.since(before, "java"), d.rows),
		d.before.Milliseconds(), float64(d.peak)/(1<<20))
	return d
}

// loop works off with bare SQL in a process of its own.
func (st *stock) loop(t *crew, p poller) drained { return st.runLoop(t, p, "") }

// loopWithKafka is loop, and publishes into a topic of its own what it takes.
func (s *site) loopWithKafka(st *stock, t *crew, p poller) drained {
	topic := s.kafka.Topic(t, partitions, nil)
	defer func() { _, _ = s.kafka.Admin(t).DeleteTopics(context.Background(), topic) }()
	d := st.runLoop(t, p, kafkaVariable+"="+strings.Join(s.kafka.Brokers(), ",")+" "+topic)
	s.checkTopic(t, topic, st.rows)
	return d
}

func (st *stock) runLoop(t *crew, p poller, variable string) drained {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var errors bytes.Buffer
	cmd := exec.Command(self, p.name, strconv.Itoa(p.batch), strconv.Itoa(st.rows))
	cmd.Env = append(os.Environ(), sqlURL+"="+st.house.PG.URL(st.house.Database))
	if variable != "" {
		cmd.Env = append(cmd.Env, variable)
	}
	cmd.Stderr = &errors
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := st.now(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process := watchProcess(cmd.Process.Pid)
	first := st.firstConnection(t, began)
	err = cmd.Wait()
	d := drained{rows: st.rows, took: time.Since(first), before: first.Sub(began)}
	_, d.peak = process.end()
	if err != nil {
		t.Fatalf("bare loop, %s: %v\n%s", p.name, err, errors.String())
	}
	d.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return d
}

// poll works off with the real binary into a topic of its own.
func (s *site) poll(st *stock, t *crew, p poller) drained {
	h := *st.house
	h.Source = fmt.Sprintf("after_publish: %s\npoll: {claim: %s, batch: %d}\n", p.after, p.claim, p.batch)
	h.Topic = s.kafka.Topic(t, partitions, nil)
	defer func() { _, _ = s.kafka.Admin(t).DeleteTopics(context.Background(), h.Topic) }()
	began := st.now(t)
	r := h.Start(t)
	first := st.firstConnection(t, began)
	awaitPublished(t, r, st.rows)
	awaitSettled(t, st.conn)
	d := drained{rows: st.rows, took: time.Since(first), before: first.Sub(began), peak: peakOf(r.PID())}
	d.cpu, _ = cpuOf(r.PID())
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("walrelay exited %d:\n%s", code, r.Log())
	}
	s.checkTopic(t, h.Topic, st.rows)
	return d
}

func (st *stock) now(t *crew) (now time.Time) {
	if err := st.conn.QueryRow(context.Background(), `select clock_timestamp()`).Scan(&now); err != nil {
		t.Fatal(err)
	}
	return now
}

// firstConnection is when somebody connected to the database after that moment:
// there the clock begins, as with the walsender of a drain.
func (st *stock) firstConnection(t *crew, after time.Time) time.Time {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		var first *time.Time
		if err := st.conn.QueryRow(context.Background(), `select min(backend_start) from pg_stat_activity
			where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() and backend_start > $1`, after).Scan(&first); err != nil {
			t.Fatal(err)
		}
		if first != nil {
			return *first
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody has connected to %s in 30 s", st.house.Database)
		}
	}
}
