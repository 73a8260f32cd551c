package tablecases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const (
	// readyWithin bounds the start of a relay on a busy machine.
	readyWithin = 30 * time.Second
	// soon bounds what ought to take well under a second, on a machine that runs
	// many other things.
	soon = 60 * time.Second
)

var errNotYet = errors.New("not yet")

// onEach runs body once per version of Postgres, in parallel; by default on the
// oldest and the newest.
func onEach(t *testing.T, body func(*testing.T, pgserver.Version), versions ...pgserver.Version) {
	t.Helper()
	if len(versions) == 0 {
		versions = []pgserver.Version{pgserver.V15, pgserver.V18}
	}
	for _, v := range versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			body(t, v)
		})
	}
}

// table is a house with an outbox, its topic, and the application that writes rows.
type table struct {
	*rig.House
	k *kafkaserver.Server
	// n is the number of the newest row; rows are numbered in the order of commits.
	n int64
}

// newTable makes a house that is not initialised yet.
func newTable(t *testing.T, pg *pgserver.Server, k *kafkaserver.Server, partitions int) *table {
	t.Helper()
	return &table{House: rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, partitions, nil)), k: k}
}

// polled is an initialised house on the shared servers whose relays poll. poll
// holds options of the section poll, for instance "batch: 5, lease: 3s".
func polled(t *testing.T, v pgserver.Version, poll string) *table {
	t.Helper()
	return polledInto(t, v, poll, nil)
}

// polledInto is polled for a topic with other settings.
func polledInto(t *testing.T, v pgserver.Version, poll string, topic map[string]string) *table {
	t.Helper()
	k := kafkaserver.Shared(t)
	tb := &table{House: rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 6, topic)), k: k}
	tb.poll(poll)
	tb.Init(t)
	return tb
}

// lingering has a relay gather records for so long before it sends any: what is
// claimed stays under way.
func lingering(d string) func(*rig.House) {
	return func(h *rig.House) { h.Kafka += "linger: " + d + "\n" }
}

// poll has the relays poll.
func (tb *table) poll(options string) {
	tb.Postgres = "capture: poll\n"
	tb.Source = "after_publish: mark\npoll: {" + options + "}\n"
	tb.Kafka = "on_poison: park\n"
}

// insertRows writes the rows numbered from $2 to $3 of route $1 over $4 keys, in one
// statement. Ids ascend as those of an application do: of rows that were made at
// the same time the lower one comes first. Event ids are not ids.
const insertRows = `insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
	select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, gen_random_uuid(), $1, 'Tested', 'pending', now(), now(),
	       jsonb_build_object('n', n), 'key ' || n % $4
	from generate_series($2::bigint, $3::bigint) as n order by n`

// fill commits rows over some keys, so many per transaction.
func (tb *table) fill(t testing.TB, rows, keys, perTransaction int) {
	t.Helper()
	conn := tb.PG.Conn(t, tb.Database)
	defer func() { _ = conn.Close(context.Background()) }()
	for done := 0; done < rows; done += perTransaction {
		size := int64(min(perTransaction, rows-done))
		if _, err := conn.Exec(context.Background(), insertRows, "orders", tb.n+1, tb.n+size, keys); err != nil {
			t.Fatal(err)
		}
		tb.n += size
	}
}

// row commits one row of a route and key, and returns its id.
func (tb *table) row(t testing.TB, route, key string) (id string) {
	t.Helper()
	tb.n++
	return tb.ask(t, `insert into public.outbox (id, event_id, outbox_route, event_type, status, occurred_at, created_at, payload, ordering_key)
		values (('00000000-0000-7000-8000-' || lpad(to_hex($1::bigint), 12, '0'))::uuid, gen_random_uuid(), $2, 'Tested', 'pending', now(), clock_timestamp(),
		jsonb_build_object('n', $1::bigint), $3) returning id::text`, tb.n, route, key)
}

// ask asks for one value as text.
func (tb *table) ask(t testing.TB, sql string, args ...any) (answer string) {
	t.Helper()
	answer, err := tb.answer(sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func (tb *table) answer(sql string, args ...any) (answer string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	conn, err := pgx.Connect(ctx, tb.PG.URL(tb.Database))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, sql, args...).Scan(&answer)
	return answer, err
}

// becomes waits until a question has that answer.
func (tb *table) becomes(t testing.TB, want string, limit time.Duration, sql string, args ...any) {
	t.Helper()
	rig.Eventually(t, fmt.Sprintf("%q from %s", want, sql), limit, func() error {
		got, err := tb.answer(sql, args...)
		if err == nil && got != want {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

// countBy says how many rows are in each state, for instance "failed 1, published 9".
const countBy = `select coalesce(string_agg(status || ' ' || n, ', ' order by status), '') from (select status, count(*) n from public.outbox group by 1) s`

// published waits until every row is.
func (tb *table) published(t testing.TB, limit time.Duration) {
	t.Helper()
	rig.Eventually(t, "every row published", limit, func() error {
		states, err := tb.answer(countBy)
		if err == nil && (strings.Contains(states, ",") || !strings.HasPrefix(states, "published")) {
			err = errors.New(states)
		}
		return err
	})
}

// committed is what the oracle needs of all rows in the table.
func (tb *table) committed(t testing.TB) []oracle.Commit {
	t.Helper()
	rows, err := tb.PG.Conn(t, tb.Database).Query(context.Background(), `
		select event_id::text, outbox_route, coalesce(ordering_key, ''), (payload->>'n')::bigint, payload::text from public.outbox`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c oracle.Commit, err error) {
		var value string
		err = row.Scan(&c.EventID, &c.Route, &c.Key, &c.Seq, &value)
		c.Value = []byte(value)
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// judge holds what is in the topic against the table.
func (tb *table) judge(t testing.TB, maxDuplicates int) oracle.Verdict {
	t.Helper()
	v := oracle.Require(t, tb.committed(t), tb.k.Consume(t, tb.Topic), maxDuplicates)
	t.Logf("%d committed, %d records, %d duplicates of at most %d", v.Committed, v.Records, v.Duplicates, maxDuplicates)
	return v
}

// variant is the same house with other lines in the Kafka section.
func (tb *table) variant(change func(*rig.House)) *rig.House {
	h := *tb.House
	change(&h)
	return &h
}

// startAll starts relays and waits until each is ready.
func startAll(t *testing.T, houses ...*rig.House) []*rig.Relay {
	t.Helper()
	relays := make([]*rig.Relay, len(houses))
	for i, h := range houses {
		relays[i] = h.Start(t)
	}
	for _, r := range relays {
		r.WaitReady(readyWithin)
		// A relay is ready while it catches up, too; what these tests are about comes after.
		r.Eventually("the end of the catch-up", readyWithin, func() error {
			st, err := r.Status()
			if err != nil {
				return err
			}
			s := st.Sources[0]
			if tb := s.Table; tb != nil && (tb.Gear == "deciding" || tb.Gear == "catch_up" || tb.Gear == "log" && s.State == "connecting") {
				return fmt.Errorf("the gear is %s, the state %s", tb.Gear, s.State)
			}
			return nil
		})
	}
	return relays
}

// stopAll ends relays in good order.
func stopAll(t testing.TB, relays ...*rig.Relay) {
	t.Helper()
	for _, r := range relays {
		if code, took := r.Stop(); code != 0 {
			t.Errorf("the stop took %s and exited %d, want 0", took, code)
		}
	}
}

// publishedBy is how many events Kafka has acknowledged to the relay.
func publishedBy(t testing.TB, r *rig.Relay) int64 {
	t.Helper()
	st, err := r.Status()
	if err != nil {
		t.Fatal(err)
	}
	return st.Sources[0].Events.Published
}

// numbers are those of the records' rows, in the order of the partition.
func numbers(records []*kgo.Record) (all []string) {
	for _, r := range records {
		_, n, _ := strings.Cut(string(r.Value), `"n": `)
		all = append(all, strings.TrimRight(n, "}"))
	}
	return all
}

// contains fails the test for each text that is not in what.
func contains(t testing.TB, what, in string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(in, text) {
			t.Errorf("%s does not say %q: %s", what, text, in)
		}
	}
}

// lacks fails the test for each text that is in what.
func lacks(t testing.TB, what, in string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if i := strings.Index(in, text); i >= 0 {
			t.Errorf("%s says %q: …%s", what, text, in[max(0, i-300):min(len(in), i+300)])
		}
	}
}

// linesOf are the lines of a text that contain what.
func linesOf(text, what string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, what) {
			lines = append(lines, line)
		}
	}
	return lines
}
