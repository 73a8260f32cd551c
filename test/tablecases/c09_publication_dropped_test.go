package tablecases

// C09 Publication dropped under a running relay.
// Source: electric-sql/electric#3322, #3044, npgsql/npgsql#6176, PeerDB-io/peerdb#2446.
// Ideal: within one check interval the relay is not ready and names the
// publication; the position does not pass rows that were not sent; after the
// publication was made again the table fills the gap, and nothing is lost.

import (
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestC09RowsWrittenWithoutAPublicationComeFromTheTable(t *testing.T) {
	t.Parallel()
	for _, onGap := range []string{"stop", "catch_up"} {
		t.Run(onGap, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) { publicationDropped(t, v, onGap) })
		})
	}
}

func publicationDropped(t *testing.T, v pgserver.Version, onGap string) {
	tb := logged(t, pgserver.Shared(t, v), onGap)
	tb.Init(t)
	r := startAll(t, tb.House)[0]
	tb.fill(t, 50, 10, 5)
	tb.published(t, soon)
	tb.Exec(t, `drop publication "`+tb.Publication+`"`)
	floor := tb.ask(t, `select pg_current_wal_insert_lsn()::text`)
	tb.fill(t, 100, 10, 5)
	r.WaitNotReady(readyWithin, tb.Publication)
	during(t, lease)
	tb.fill(t, 100, 10, 5)
	if got := tb.ask(t, countBy); got != "pending 200, published 50" {
		if onGap == "stop" {
			t.Errorf("without a publication the rows are %s", got)
		}
	}
	if at := tb.ReadSlot(t).Confirmed; lsn(t, at) > lsn(t, floor) && onGap == "stop" {
		t.Errorf("the slot is confirmed up to %s, rows after %s were not sent", at, floor)
	}
	if onGap == "stop" {
		out, code := tb.Command(t, "init")
		if code != 3 || !strings.Contains(out, "on_gap: catch_up") {
			t.Errorf("init makes a publication that is younger than the slot, or does not say what to do (exit %d):\n%s", code, out)
		}
		stopHalted(t, r)
		tb.onGap("catch_up")
	}
	tb.Init(t) // makes the publication again
	if onGap == "stop" {
		r = tb.Start(t)
	}
	tb.published(t, 2*soon)
	r.WaitReady(readyWithin)
	tb.fill(t, 50, 10, 5)
	tb.published(t, soon)
	stopAll(t, r)
	tb.judge(t, 0)
}

func lsn(t testing.TB, text string) event.LSN {
	t.Helper()
	at, err := event.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
