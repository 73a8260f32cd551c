package cases

// C27, the last sentence of its ideal: an explicit opt-in lets a row filter
// through, and says so in a metric.

import (
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC27FilterPassesWhenAskedForAndIsShown(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
	forzeTable(t, h, "jsonb")
	h.Exec(t, `create publication `+h.Publication+` for table outbox where (outbox_route = 'orders') with (publish = 'insert')`)
	h.Postgres = "allow_row_filter: true"
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(readyWithin)
	l := newLedger(h)
	l.write(t, "a", "b")
	k.ConsumeN(t, 2, soon, h.Topic)
	rig.Eventually(t, "a warning of the filter", soon, func() error {
		if r.Metric("walrelay_config_warnings") == 0 {
			return errorText("walrelay_config_warnings is 0")
		}
		return nil
	})
	_, body, err := r.Get("/readyz")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "/readyz", body, "allow_row_filter")
}
