package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/rig"
)

// drained is what one drain took.
type drained struct {
	rows      int
	took      time.Duration // from the start of the walsender to the last row
	before    time.Duration // from the start of the process to that of the walsender
	cpu       time.Duration // of the process under test
	walsender time.Duration // CPU of its server process: the walsender, or mongod
	peak      int64         // bytes
}

// drains runs all drains of a workload and sums them up.
func (s *site) drains(t *crew, w workload) (results []result) {
	within(t, func(t *crew) {
		b := s.preload(t, w)
		entrants := []entrant{}
		if tool := recvlogical(); tool != "" {
			entrants = append(entrants, entrant{"pg_recvlogical", func(t *crew, slot string) drained { return b.recvlogical(t, tool, slot) }})
		}
		entrants = append(entrants, entrant{"raw reader", b.raw})
		walrelay := entrant{"walrelay", func(t *crew, slot string) drained { return s.walrelay(t, b, slot, "") }}
		entrants = append(entrants, walrelay)
		if w.lz4 {
			entrants = append(entrants, entrant{"walrelay lz4", func(t *crew, slot string) drained { return s.walrelay(t, b, slot, "compression: lz4\n") }})
		}
		runs := make([][]drained, len(entrants))
		within(t, func(t *crew) { s.once(t, b, walrelay, "warm-up") })
		for round := range s.rounds {
			for i, e := range entrants {
				within(t, func(t *crew) { runs[i] = append(runs[i], s.once(t, b, e, fmt.Sprintf("round %d", round+1))) })
			}
		}
		for i, e := range entrants {
			results = append(results, sum(e.name+", "+w.name, runs[i], runs[0]))
		}
	})
	return results
}

// entrant is one way to drain a slot.
type entrant struct {
	name  string
	drain func(t *crew, slot string) drained
}

func (s *site) once(t *crew, b *backlog, e entrant, what string) drained {
	const slot = "bench_copy"
	b.copySlot(t, slot)
	d := e.drain(t, slot)
	t.report(b.name, what, e.name, d)
	return d
}

func (t *crew) report(workload, what, name string, d drained) {
	t.Logf("%-9s %-8s %-16s %8.0f rows/s, %.2f µs per row, server %.2f µs (%.0f%% busy), %d ms to start, peak %.0f MiB", workload, what, name,
		float64(d.rows)/d.took.Seconds(), micros(d.cpu, d.rows), micros(d.walsender, d.rows), 100*d.walsender.Seconds()/d.took.Seconds(),
		d.before.Milliseconds(), float64(d.peak)/(1<<20))
}

func micros(d time.Duration, rows int) float64 { return float64(d.Microseconds()) / float64(rows) }

// walsender is the server process that serves a slot.
type walsender struct {
	cpu   *watch
	began time.Time
}

// awaitWalsender waits for the slot to be in use.
func awaitWalsender(t *crew, conn *pgx.Conn, slot string) walsender {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		var pid int
		var began time.Time
		err := conn.QueryRow(context.Background(), `select r.pid, r.backend_start from pg_replication_slots s join pg_stat_replication r on r.pid = s.active_pid where s.slot_name = $1`, slot).
			Scan(&pid, &began)
		if err == nil {
			return walsender{watchProcess(pid), began}
		}
		if time.Now().After(deadline) {
			t.Fatalf("slot %s is not in use 30 s after the start: %v", slot, err)
		}
	}
}

// walrelay drains with the real binary into a topic of its own.
func (s *site) walrelay(t *crew, b *backlog, slot, kafka string) drained {
	h := *b.house
	h.Slot, h.Kafka = slot, kafka
	h.Topic = s.kafka.Topic(t, partitions, nil)
	if b.route != "" {
		h.Routes = fmt.Sprintf("\"*\": {topic: %s%s}\n", h.Topic, b.route)
	}
	admin := s.kafka.Admin(t)
	defer func() { _, _ = admin.DeleteTopics(context.Background(), h.Topic) }()
	if slot != b.house.Slot {
		// Without a marker it begins where the copy does.
		h.Exec(t, `delete from walrelay.source`)
	}
	conn := s.pg.Conn(t, h.Database)

	began := time.Now()
	r := h.Start(t)
	ws := awaitWalsender(t, conn, slot)
	var d drained
	awaitPublished(t, r, b.rows)
	if b.after != "" {
		awaitSettled(t, conn)
	}
	d.took = time.Since(ws.began)
	d.cpu, _ = cpuOf(r.PID())
	d.walsender, _ = ws.cpu.end()
	d.peak = peakOf(r.PID())
	d.rows, d.before = b.rows, ws.began.Sub(began)
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("walrelay exited %d:\n%s", code, r.Log())
	}
	s.checkTopic(t, h.Topic, b.rows)
	if b.after != "" {
		checkTable(t, conn, b.after, b.rows)
	}
	return d
}

// awaitPublished waits until walrelay reports so many events as acknowledged.
func awaitPublished(t *crew, r *rig.Relay, rows int) {
	rig.Eventually(t, "the last event", 10*time.Minute, func() error {
		st, err := r.Status()
		if err != nil {
			return err
		}
		if n := st.Sources[0].Events.Published; n < int64(rows) {
			return fmt.Errorf("%d of %d published", n, rows)
		}
		return nil
	})
}

// checkTopic wants each row once.
func (s *site) checkTopic(t *crew, topic string, rows int) {
	ends, err := s.kafka.Admin(t).ListEndOffsets(context.Background(), topic)
	if err != nil {
		t.Fatal(err)
	}
	held := int64(0)
	for _, p := range ends[topic] {
		held += p.Offset
	}
	if held != int64(rows) {
		t.Fatalf("topic %s holds %d records, want %d", topic, held, rows)
	}
}
