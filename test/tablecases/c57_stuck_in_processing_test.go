package tablecases

// C57 Row stuck in processing.
// Source: hexclave/hexclave#1356 and #1030, xavierjohn/Trellis#644, heypinchy/pinchy#734.
// Ideal: what a killed relay had claimed is claimed again within lease and
// interval by any other, nothing is lost, and attempts count the try that was lost.

import (
	"fmt"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const lease = 3 * time.Second

func TestC57WhatAKilledRelayHadClaimedIsClaimedAgain(t *testing.T) {
	t.Parallel()
	for _, survivor := range []string{"one that was there", "one that comes"} {
		t.Run(survivor, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) {
				// So that the kill does not fall between the broker's answer and the mark.
				tb := polled(t, v, fmt.Sprintf("batch: 500, interval: 200ms, lease: %s, reclaim_after: 10m", lease))
				first := startAll(t, tb.variant(lingering("1m")))[0]
				tb.fill(t, 500, 50, 500)
				tb.becomes(t, "processing 500", soon, countBy)
				var second *rig.Relay
				if survivor == "one that was there" {
					second = startAll(t, tb.House)[0]
				}
				first.Kill()
				killed := time.Now()
				if second == nil {
					second = startAll(t, tb.House)[0]
				}
				tb.becomes(t, "500", lease+10*time.Second, `select (count(*) filter (where attempts = 1))::text from public.outbox`)
				t.Logf("claimed again %s after the kill", time.Since(killed).Round(10*time.Millisecond))
				tb.published(t, soon)
				stopAll(t, second)
				tb.judge(t, 0)
				if got := tb.ask(t, `select min(attempts) || ' to ' || max(attempts) from public.outbox`); got != "1 to 1" {
					t.Errorf("attempts are %s, want 1: one try was lost", got)
				}
			})
		})
	}
}
