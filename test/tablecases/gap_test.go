package tablecases

import (
	"fmt"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// logged is a house, not initialised yet, whose relay reads the log and marks
// rows, so that a gap can be filled from the table.
func logged(t *testing.T, pg *pgserver.Server, onGap string) *table {
	t.Helper()
	return loggedInto(t, pg, onGap, nil)
}

// loggedInto is logged for a topic with other settings.
func loggedInto(t *testing.T, pg *pgserver.Server, onGap string, topic map[string]string) *table {
	t.Helper()
	k := kafkaserver.Shared(t)
	tb := &table{House: rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, topic)), k: k}
	tb.poll("interval: 200ms, lease: 3s")
	tb.Source += "sweep_every: 1s\n"
	tb.onGap(onGap)
	return tb
}

func (tb *table) onGap(what string) { tb.Postgres = "on_gap: " + what + "\n" }

// ranOnce has ten rows published and the relay gone in good order: what it
// remembers is what a later one finds.
func (tb *table) ranOnce(t *testing.T) {
	t.Helper()
	r := startAll(t, tb.House)[0]
	tb.fill(t, 10, 5, 1)
	tb.published(t, soon)
	stopAll(t, r)
}

// halts starts a relay that has to stop with these words instead of
// going on, waits for them, and makes sure that nothing was published.
func (tb *table) halts(t *testing.T, words ...string) *rig.Relay {
	t.Helper()
	before := len(tb.k.Consume(t, tb.Topic))
	r := tb.Start(t)
	body := r.WaitNotReady(readyWithin, `"state": "halted"`)
	contains(t, "the reason", body, words...)
	if after := len(tb.k.Consume(t, tb.Topic)); after != before {
		t.Errorf("beside a gap the relay published %d records", after-before)
	}
	return r
}

// catchesUp starts a relay that may fill the gap and waits until every row is
// published; then the log has to work: one more row. Nothing came twice.
func (tb *table) catchesUp(t *testing.T) *rig.Relay {
	t.Helper()
	r := tb.Start(t)
	tb.published(t, 2*soon)
	r.WaitReady(readyWithin)
	tb.fill(t, 1, 1, 1)
	tb.published(t, soon)
	r.Eventually("streaming", readyWithin, func() error {
		st, err := r.Status()
		if err == nil && st.Sources[0].State != "streaming" {
			err = fmt.Errorf("it is %s", st.Sources[0].State)
		}
		return err
	})
	return r
}
