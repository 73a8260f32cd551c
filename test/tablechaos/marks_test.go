package tablechaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
	"github.com/walrelay/walrelay/test/workload"
)

// noLookUp is the relay's environment that leaves out the look-up below the start
// line (DESIGN, positions, rule 7), to measure what it is worth.
const noLookUp = "WALRELAY_TEST_NO_LOOK_UP=1"

// The log with marks, the relay killed every 3 to 8 seconds: as it is, with Postgres
// restarted in half of the rounds, and without the look-up.
func TestKillsBetweenAcknowledgementAndMarkLeaveNothingPending(t *testing.T) {
	var with, without outcome
	t.Run("runs", func(t *testing.T) {
		for _, run := range []struct {
			name     string
			restarts bool
			env      []string
			out      *outcome
		}{
			{"kills alone", false, nil, &with},
			{"restarts of Postgres too", true, nil, new(outcome)},
			{"without the look-up", false, []string{noLookUp}, &without},
		} {
			t.Run(run.name, func(t *testing.T) {
				t.Parallel()
				*run.out = killing(t, length(t), run.restarts, run.env...)
				// What Kafka had acknowledged and the table not yet recorded: the batch of
				// marks under way and the one that waits, about a tenth of a second of
				// events each; the transaction at hand. Twice that, for a busy machine.
				if limit := run.out.kills * 600; run.env == nil && run.out.verdict.Duplicates > limit {
					t.Errorf("%d duplicates in %d kills, want at most %d", run.out.verdict.Duplicates, run.out.kills, limit)
				}
			})
		}
	})
	t.Logf("duplicates per kill: %.1f with the look-up, %.1f without", with.perKill(), without.perKill())
	if with.perKill() >= without.perKill() {
		t.Error("the look-up does not cut duplicates")
	}
}

func (o outcome) perKill() float64 { return float64(o.verdict.Duplicates) / float64(max(o.kills, 1)) }

type outcome struct {
	kills   int
	verdict oracle.Verdict
}

func killing(t *testing.T, d time.Duration, restarts bool, env ...string) outcome {
	t.Helper()
	k := kafkaserver.Shared(t)
	pg := pgserver.Start(t, pgserver.Options{Version: pgserver.V18})
	h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 6, nil))
	h.Source = "after_publish: mark\nsweep_every: 2s\n"
	h.Kafka = "on_poison: park\n"
	h.Env = env
	h.Init(t)
	load := workload.New(t, workload.Options{DSN: pg.URL(h.Database), Table: "public.outbox", Rate: 40})
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	writers.Go(func() { load.Run(ctx, t) })
	defer writers.Wait()
	defer cancel()

	r := h.Start(t)
	out := outcome{}
	for end := time.Now().Add(d); time.Now().Before(end); out.kills++ {
		pause(t, 3*time.Second+rand.N(5*time.Second))
		if restarts && out.kills%2 == 1 {
			pg.Restart(t, []pgserver.Mode{pgserver.Fast, pgserver.Immediate}[out.kills/2%2])
		}
		r.Kill()
		r = h.Start(t)
	}
	pause(t, 3*time.Second)
	cancel()
	writers.Wait()
	rig.Eventually(t, "no row that is not published", 2*time.Minute, func() error {
		// Not states: after a restart the connection may have to be made twice.
		conn, err := connect(h)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.Background()) }()
		var left int
		if err := conn.QueryRow(context.Background(), `select count(*) from public.outbox where status <> 'published'`).Scan(&left); err != nil {
			return err
		}
		if left > 0 {
			return errors.New(states(t, h))
		}
		return nil
	})
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	out.verdict = oracle.Check(load.Committed(), k.Consume(t, h.Topic))
	t.Logf("%d kills, load %+v: %s", out.kills, load.Stats(), out.verdict)
	if !out.verdict.CleanButForDuplicates() {
		t.Errorf("what arrived is not what was committed: %s", out.verdict)
	}
	return out
}
