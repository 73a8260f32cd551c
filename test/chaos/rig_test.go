// Package chaos ends, kills, freezes and restarts what can be, under load, and
// judges what arrived against what was committed.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
	"github.com/walrelay/walrelay/test/workload"
)

// scene is a house under load: eight writers with transactions of 1 to 50 rows,
// savepoints, multi-row inserts, COPY and 10 % rollbacks over 50 keys.
type scene struct {
	*rig.House
	t     *testing.T
	k     *kafkaserver.Server
	load  *workload.Load
	end   context.CancelFunc
	ended sync.WaitGroup
}

func newScene(t *testing.T, pg *pgserver.Server, k *kafkaserver.Server) *scene {
	t.Helper()
	h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 6, nil))
	h.Init(t)
	s := &scene{House: h, t: t, k: k}
	s.load = workload.New(t, workload.Options{DSN: pg.URL(h.Database), Table: "public.outbox", Rate: 60})
	ctx, cancel := context.WithCancel(t.Context())
	s.end = cancel
	s.ended.Go(func() { s.load.Run(ctx, t) })
	t.Cleanup(func() {
		cancel()
		s.ended.Wait()
	})
	return s
}

// pause lets the load run on.
func (s *scene) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.t.Context().Done():
	}
}

// published waits until the relay has published n more events.
func (s *scene) published(r *rig.Relay, n int, limit time.Duration) {
	s.t.Helper()
	var first int64 = -1
	r.Eventually(fmt.Sprintf("progress by %d events", n), limit, func() error {
		st, err := r.Status()
		if err != nil {
			return err
		}
		now := st.Sources[0].Events.Published
		if first < 0 {
			first = now
		}
		if now-first < int64(n) {
			return fmt.Errorf("%d of %d", now-first, n)
		}
		return nil
	})
}

// judge ends the load, lets the relay catch up and compares.
func (s *scene) judge(r *rig.Relay) oracle.Verdict {
	s.t.Helper()
	s.end()
	s.ended.Wait()
	committed := s.load.Committed()
	var v oracle.Verdict
	r.Eventually("everything committed in Kafka", 60*time.Second, func() error {
		st, err := r.Status()
		if err != nil {
			return err
		}
		if st.Sources[0].InFlightEvents > 0 || !st.Ready {
			return errors.New("still at work")
		}
		v = oracle.Check(committed, s.k.Consume(s.t, s.Topic))
		if v.Lost > 0 {
			return fmt.Errorf("%d of %d are missing", v.Lost, v.Committed)
		}
		return nil
	})
	s.t.Logf("%s; load %+v", v, s.load.Stats())
	if !v.CleanButForDuplicates() {
		s.t.Errorf("what arrived is not what was committed: %s\n%v", v, v.Examples)
	}
	return v
}
