package tablecases

// C63 Database defaults to serializable.
// Source: divviup/janus#358, hangfire-postgres/Hangfire.PostgreSql#271,
// kagkarlsson/db-scheduler#295.
// Ideal: the relay pins read committed for its own statements: no 40001 with three
// relays on 5 000 rows, whatever the database's default is; the marks of the log
// path too.

import (
	"fmt"
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC63IsolationIsTheRelaysOwn(t *testing.T) {
	t.Parallel()
	for _, capture := range []string{"poll", "log"} {
		for _, isolation := range []string{"serializable", "repeatable read"} {
			t.Run(capture+" "+isolation, func(t *testing.T) {
				t.Parallel()
				onEach(t, func(t *testing.T, v pgserver.Version) { isolated(t, v, capture, isolation) })
			})
		}
	}
}

func isolated(t *testing.T, v pgserver.Version, capture, isolation string) {
	pg := pgserver.Shared(t, v)
	tb := newTable(t, pg, kafkaserver.Shared(t), 6)
	tb.poll("batch: 100, interval: 100ms, lease: 3s")
	tb.Postgres = "capture: " + capture + "\n"
	tb.Exec(t, fmt.Sprintf(`alter database %s set default_transaction_isolation = '%s'`, tb.Database, isolation))
	tb.Init(t)
	houses := []*rig.House{tb.House, tb.House, tb.House}
	if capture == "log" {
		houses = houses[:1] // the others would stand by
	}
	relays := startAll(t, houses...)
	tb.fill(t, 5000, 100, 50)
	tb.published(t, 2*soon)
	stopAll(t, relays...)
	tb.judge(t, 0)
	for _, r := range relays {
		lacks(t, "the log", r.Log(), "40001", "could not serialize")
	}
	// The server's log has a line for each, with the database's name in its prefix.
	for _, line := range linesOf(pg.Log(), "@"+tb.Database+" ") {
		lacks(t, "the server's log", line, "could not serialize")
	}
}
