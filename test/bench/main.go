// Command bench measures walrelay against Postgres' own client: how fast one
// slot is drained into a real Kafka, what that costs, and how long an event
// takes from its commit to a consumer.
//
// Both read the same backlog, which is written once: before each drain the slot
// is copied, and the copy begins where the original does. Rounds are
// interleaved (client, walrelay, client, walrelay, …), figures are medians, and a
// ratio is taken against the client's median of the same run. A first drain,
// which warms up the broker and the page cache, is not counted.
//
// The clock of a drain runs from the start of the walsender (the same moment for
// both, as Postgres reports it) to the exit of the client, or to the moment when
// walrelay reports its last event as acknowledged (looked at every 50 ms). Every
// drain of walrelay is then checked: the topic holds each row exactly once.
//
// Three cases are about the table. In poll a preloaded table is worked off, by
// walrelay into Kafka, by a bare loop of the same SQL statements into nothing, and by
// that loop with a plain franz-go client; in
// marks the log is drained while rows are kept, marked or deleted; claim times single
// claims while more and more rows are pending. There the clock runs until the last row
// is marked or deleted in the table, and commits wait for the disk (fsync).
//
// The case order drains one backlog of stamped rows with order commit, order hlc and
// order hlc within_key commit, and then times live events from commit to consumer.
//
// The case mongo drains the change stream of one collection, with MongoDB's driver alone
// (batches of 1000) and with walrelay, whose position is put back before each drain; in mongo poll
// the collection is worked off, by walrelay, by a bare loop of the same commands into nothing, and by that loop with a
// plain franz-go client.
// There the clock begins when the stream is opened, or when the program connects, as the server sees it; commits wait
// for the disk. The case json writes payloads of BSON as JSON, without any server.
//
// Settings are the environment variables BENCH_ROWS (1000000), BENCH_POLL_ROWS
// (300000, of poll and marks), BENCH_CLAIM_ROWS (1000000, the most pending rows of
// claim), BENCH_ROUNDS (2), BENCH_PG (18), BENCH_CASES
// (jsonb,text,messages,latency,poll,marks,claim,order,json,mongo,mongo poll; "poll row", "poll lease" and "poll delete" are
// parts of poll, and likewise of mongo poll) and BENCH_OUT, the name of a JSON file
// for the results. WALRELAY_TEST_BINARY names a walrelay that was built before.
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// settings are what the environment says.
type settings struct {
	rows, pollRows, claimRows, rounds int
	version                           pgserver.Version
	cases                             []string
	out                               string
}

func main() {
	for variable, be := range map[string]func(url string, args []string) error{rawURL: drainRaw, sqlURL: workOff, mongoRawURL: drainChanges, mongoLoopURL: workOffCollection} {
		if url := os.Getenv(variable); url != "" {
			if err := be(url, os.Args[1:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	// Children get a signal when the thread that started them ends; this one stays.
	runtime.LockOSThread()
	set, err := readSettings()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var results []result
	ok := inScope(func(t *crew) { results = measure(t, set) })
	rig.Cleanup()
	if !ok {
		os.Exit(1)
	}
	printTable(os.Stdout, results)
	if set.out != "" {
		if err := writeJSON(set.out, results); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func readSettings() (settings, error) {
	set := settings{
		rows: 1_000_000, pollRows: 300_000, claimRows: 1_000_000, rounds: 2, version: pgserver.V18,
		cases: []string{"jsonb", "text", "messages", "latency", "poll", "marks", "claim", "order", "json", "mongo", "mongo poll"}, out: os.Getenv("BENCH_OUT"),
	}
	version := int(set.version)
	for name, into := range map[string]*int{
		"BENCH_ROWS": &set.rows, "BENCH_POLL_ROWS": &set.pollRows, "BENCH_CLAIM_ROWS": &set.claimRows, "BENCH_ROUNDS": &set.rounds, "BENCH_PG": &version,
	} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return set, fmt.Errorf("%s is %q, want a positive number", name, text)
		}
		*into = n
	}
	set.version = pgserver.Version(version)
	if !slices.Contains(pgserver.Versions, set.version) {
		return set, fmt.Errorf("BENCH_PG is %d, want one of %v", version, pgserver.Versions)
	}
	if text := os.Getenv("BENCH_CASES"); text != "" {
		set.cases = strings.Split(text, ",")
	}
	return set, nil
}

// measure runs all cases on one Postgres and one Kafka.
func measure(t *crew, set settings) []result {
	pg := pgserver.Start(t, pgserver.Options{Version: set.version, Settings: map[string]string{
		"shared_buffers": "256MB", "max_wal_size": "50GB", "checkpoint_timeout": "1d", "autovacuum": "off",
		"wal_sender_timeout": "10min",
	}})
	kafka := kafkaserver.Start(t, kafkaserver.Options{ServerClass: true})
	site := &site{settings: set, pg: pg, kafka: kafka}
	var results []result
	for _, name := range set.cases {
		switch name {
		case "latency":
			results = append(results, site.latency(t, "default linger", ""), site.latency(t, "linger 0", "linger: 0s\n"))
		case "poll", "poll row", "poll lease", "poll delete":
			results = append(results, site.polls(t, name)...)
		case "marks":
			results = append(results, site.marks(t)...)
		case "order":
			results = append(results, site.ordered(t)...)
		case "claim":
			results = append(results, site.claims(t)...)
		case "mongo":
			results = append(results, site.mongoDrains(t)...)
		case "json":
			results = append(results, site.toJSON(t)...)
		case "mongo poll", "mongo poll row", "mongo poll lease", "mongo poll delete":
			results = append(results, site.mongoPolls(t, name)...)
		default:
			w, known := workloads[name]
			if !known {
				t.Fatalf("BENCH_CASES names %q, want jsonb, text, messages, latency, poll, poll row, poll lease, poll delete, marks, claim, order, json, mongo or mongo poll", name)
			}
			results = append(results, site.drains(t, w)...)
		}
	}
	return results
}

// site is what the cases share.
type site struct {
	settings
	pg    *pgserver.Server
	kafka *kafkaserver.Server
}
