package forze

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// way is how the relay reads.
type way string

const (
	byPolling way = "poll"
	byLog     way = "log"
)

// house is a forze application with the real binary and a real Kafka.
type house struct {
	*rig.House
	*database
	k   *kafkaserver.Server
	way way
}

// newHouse makes one, initialised. options are of its only route.
func newHouse(t *testing.T, v pgserver.Version, w way, options ...string) *house {
	t.Helper()
	k := kafkaserver.Shared(t)
	h := &house{House: rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 3, nil)), k: k, way: w}
	h.Postgres = fmt.Sprintf("capture: %s\n", w)
	h.Source = "after_publish: mark\nsweep_every: 1s\npoll: {interval: 100ms, lease: 3s, reclaim_after: 5m, backoff_min: 100ms, backoff_max: 1s}\n"
	h.Kafka = "on_poison: park\n"
	if len(options) > 0 {
		h.Routes = fmt.Sprintf("\"*\": {topic: %s, %s}\n", h.Topic, strings.Join(options, ", "))
	}
	h.Init(t)
	h.database = openDatabase(t, h.PG, h.Database)
	return h
}

// start starts a relay that is ready and reads as it is to.
func (h *house) start(t *testing.T) *rig.Relay {
	t.Helper()
	r := h.Start(t)
	r.WaitReady(soon)
	r.Eventually("the gear", soon, func() error { // the log begins with a catch-up
		st, err := r.Status()
		if err != nil {
			return err
		}
		if s := st.Sources[0]; s.State != event.StateStreaming || s.Table == nil || s.Table.Gear != string(h.way) {
			return fmt.Errorf("state %s, table %+v", s.State, s.Table)
		}
		return nil
	})
	return r
}

// records are those of the topic once there are n, and all that are there then.
func (h *house) records(t *testing.T, n int) []*kgo.Record {
	t.Helper()
	return h.k.ConsumeN(t, n, soon, h.Topic)
}

// isMarked is what the way leaves of a published row: the log leaves no claim.
func (h *house) isMarked(id string, also changes) {
	h.t.Helper()
	all := changes{}
	if h.way == byLog {
		all["processing_at"] = nil
	}
	maps.Copy(all, also)
	h.isPublished(id, all)
}

// stop ends a relay in good order.
func stop(t *testing.T, r *rig.Relay) {
	t.Helper()
	if code, took := r.Stop(); code != 0 {
		t.Errorf("the stop took %s and exited %d, want 0", took.Round(time.Millisecond), code)
	}
}
