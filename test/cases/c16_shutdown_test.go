package cases

// C16 Postgres cannot shut down because of the relay.
// Source: replicase/pgcapture#55, ihippik/wal-listener#43,
// Mooncake-Labs/moonlink#819, patroni/patroni#3522, DBZ-1839.
// Ideal: the server of an idle relay stops in less than 5 s (we promise 2). With
// Kafka stalled the relay leaves the stream, truthfully, so that the server stops
// within 15 s; nothing is lost after its restart.

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC16PostgresStopsWhileTheRelayIsIdleAndWhileKafkaIsStalled(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{})
	type scene struct {
		h *rig.House
		l *ledger
		r *rig.Relay
	}
	var scenes []*scene
	for _, v := range pgserver.Versions {
		pg := pgserver.Start(t, pgserver.Options{Version: v})
		s := &scene{h: rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, nil))}
		s.h.Init(t)
		s.l = newLedger(s.h)
		s.r = s.h.Start(t)
		s.r.WaitReady(readyWithin)
		s.l.writeMany(t, 100, 10)
		s.l.drained(t, 30*time.Second)
		scenes = append(scenes, s)
	}
	// stop stops all servers at once and returns when they have.
	stop := func(what string, bound time.Duration) {
		var all sync.WaitGroup
		for _, s := range scenes {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				took, err := s.h.PG.StopContext(ctx, pgserver.Fast)
				if err != nil || took > bound {
					t.Errorf("%s with %s: the stop took %s, bound %s: %v", s.h.PG.Version(), what, took, bound, err)
				} else {
					t.Logf("%s with %s: stopped in %s", s.h.PG.Version(), what, took.Round(time.Millisecond))
				}
			})
		}
		all.Wait()
	}

	// Log of others that nobody confirmed yet, then the stop.
	for _, s := range scenes {
		s.h.Exec(t, "create table busy as select repeat('x', 1000) from generate_series(1, 1000)")
	}
	stop("an idle relay", 5*time.Second)
	for _, s := range scenes {
		s.h.PG.StartAgain(t)
	}
	for _, s := range scenes {
		s.r.WaitReady(readyWithin)
		s.l.writeMany(t, 100, 10)
		s.l.drained(t, 30*time.Second)
		s.l.judge(t, k.Consume(t, s.h.Topic), 0)
	}

	k.Pause(t)
	for _, s := range scenes {
		s.l.writeMany(t, 1000, 10)
		floor := s.l.floor(200)
		s.r.Eventually("the pending rows in the relay", 20*time.Second, func() error {
			if st, err := s.r.Status(); err != nil || st.Sources[0].InFlightEvents == 0 {
				return errNothingYet
			}
			return nil
		})
		neverPast(t, []look{{confirmed: parseLSN(t, s.h.ReadSlot(t).Confirmed)}}, floor)
	}
	stop("a stalled Kafka", 15*time.Second)
	for _, s := range scenes {
		if !s.r.Running() {
			t.Errorf("%s: the relay ended with its server", s.h.PG.Version())
			continue
		}
		s.r.WaitNotReady(15*time.Second, "")
		st, err := s.r.Status()
		if err != nil || st.Sources[0].State == event.StateStreaming {
			t.Errorf("%s: the server is down and the source is %v (%v)", s.h.PG.Version(), st.Sources, err)
		}
		s.h.PG.StartAgain(t)
		// S, with Kafka still stalled: the shutdown was given no untrue position.
		neverPast(t, []look{{confirmed: parseLSN(t, s.h.ReadSlot(t).Confirmed)}}, s.l.floor(200))
	}
	k.Continue(t)
	for _, s := range scenes {
		s.r.WaitReady(readyWithin)
		s.l.drained(t, 60*time.Second)
		s.l.judge(t, k.Consume(t, s.h.Topic), 0)
		stopsClean(t, s.r)
	}
}
