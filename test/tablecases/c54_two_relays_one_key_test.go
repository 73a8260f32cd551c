package tablecases

// C54 Two relays, one key, SKIP LOCKED.
// Source: AlexeyRaga/kafkaflow-contrib#24, aws-samples/transactional-outbox-pattern#6,
// kgrzybek/sample-dotnet-core-cqrs-api#15.
// Ideal: no inversion and no duplicate with any number of relays, and the work is
// shared. (3 000 rows instead of 10 000; the delay of one relay's produce is its
// linger, which holds each record for that long.)

import (
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC54ManyRelaysKeepTheOrderOfEachKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		tb := polled(t, v, "batch: 5, interval: 200ms, lease: 3s")
		slow := tb.variant(func(h *rig.House) { h.Kafka += "linger: 150ms\n" })
		relays := startAll(t, slow, tb.House, tb.House)
		began := time.Now()
		tb.fill(t, 3000, 10, 7)
		tb.published(t, 2*soon)
		t.Logf("3 000 rows in %s", time.Since(began).Round(10*time.Millisecond))
		for i, r := range relays {
			n := publishedBy(t, r)
			t.Logf("relay %d published %d", i, n)
			if n == 0 {
				t.Errorf("relay %d had no share of ten keys", i)
			}
		}
		stopAll(t, relays...)
		tb.judge(t, 0)
	})
}
