package cases

// C25 Payload from 1 MB to the jsonb ceiling
//
// Source: airbytehq/airbyte#4746, eulerto/wal2json#272, slotix/dbconvert-streams-public#7, supabase/walrus#11.
//
// Ideal: rows within the topic's limit are delivered whole; larger ones take the
// poison path without being held in memory; small rows of other keys are not
// delayed by more than 10 s; nothing is ever cut short.
//
// Shortened: one row of 200 MB stands for the ceiling of 255 MB, and one of 30 MB
// of quotes, which print as 60 MB, for 250 MB of them.

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC25LargePayloadsAreWholeOrRefusedAndDelayNobody(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	pg := pgserver.Start(t, pgserver.Options{Version: pgserver.V18, Settings: map[string]string{"max_wal_size": "4GB"}})
	h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 1, map[string]string{"max.message.bytes": "8000000"}))
	letters := k.Topic(t, 1, nil)
	h.Kafka = "on_poison: dlq\ndlq_topic: " + letters
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(readyWithin)

	small := newLedger(h)
	arrivals := watchArrivals(t, k, h.Topic)
	stop := small.keepWriting(t, 100*time.Millisecond)
	const mb = 1 << 20
	sizes := []struct {
		n         int
		of        string
		delivered bool
	}{
		{1 * mb, "x", true},
		{5 * mb, "x", true},
		{20 * mb, "x", false},
		{60 * mb, "x", false},
		{30 * mb, `"`, false},
		{200 * mb, "x", false},
	}
	conn := pg.Conn(t, h.Database)
	big := map[string]int{} // event id: index of sizes
	var behind []string     // events of the same key behind each
	for i, s := range sizes {
		var id, next string
		if err := conn.QueryRow(context.Background(), `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
			values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), to_jsonb(repeat($1, $2)), 'big') returning event_id::text`, s.of, s.n).Scan(&id); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(context.Background(), `insert into outbox (id, event_id, outbox_route, event_type, occurred_at, payload, ordering_key)
			values (gen_random_uuid(), gen_random_uuid(), 'orders', 'Tested', now(), to_jsonb($1::int), 'big') returning event_id::text`, i).Scan(&next); err != nil {
			t.Fatal(err)
		}
		big[id] = i
		behind = append(behind, next)
	}
	arrivals.await(t, behind[len(behind)-1], 2*time.Minute)
	stop()
	small.drained(t, soon)
	if _, peak := r.RSS(); peak > 160<<20 {
		t.Errorf("the relay took %d MiB at its peak, bound is 160", peak>>20)
	}
	r.WaitReady(soon)

	own := map[string]bool{}
	var ofSmall, ofBig []*kgo.Record
	for _, c := range small.committed() {
		own[c.EventID] = true
	}
	for _, rec := range k.Consume(t, h.Topic) {
		if own[oracle.EventID(rec)] {
			ofSmall = append(ofSmall, rec)
		} else {
			ofBig = append(ofBig, rec)
		}
	}
	small.judge(t, ofSmall, 0)
	if late := arrivals.latest(own); late > 10*time.Second {
		t.Errorf("a small row of another key arrived %s after its commit, bound is 10 s", late)
	}

	var want, got []string
	for i, s := range sizes {
		if s.delivered {
			want = append(want, strconv.Quote(strings.Repeat("x", 3))+"…")
		}
		want = append(want, strconv.Itoa(i))
	}
	for _, rec := range ofBig {
		i, isBig := big[oracle.EventID(rec)]
		if !isBig {
			got = append(got, string(rec.Value))
			continue
		}
		got = append(got, strconv.Quote(string(rec.Value[1:4]))+"…")
		if whole := strconv.Quote(strings.Repeat(sizes[i].of, sizes[i].n)); string(rec.Value) != whole {
			t.Errorf("the event of %d bytes arrived with %d bytes, or others", len(whole), len(rec.Value))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("of key big arrived %v, want %v", got, want)
	}
	refused := k.ConsumeN(t, 4, soon, letters)
	if len(refused) != 4 {
		t.Errorf("%d dead letters, want 4", len(refused))
	}
	for _, rec := range refused {
		i, isBig := big[oracle.EventID(rec)]
		if !isBig || sizes[i].delivered {
			t.Errorf("dead letter of event %s, which is not among the large ones", oracle.EventID(rec))
			continue
		}
		printed := sizes[i].n
		if sizes[i].of == `"` {
			printed *= 2
		}
		reason, _ := header(rec, "walrelay_dlq_reason")
		contains(t, "the letter's reason", reason, strconv.Itoa(printed+2), "max_event_bytes")
		if relation, _ := header(rec, "walrelay_dlq_relation"); !strings.Contains(relation, "outbox") {
			t.Errorf("the letter names the relation %q", relation)
		}
		if len(rec.Value) != 0 || !bytes.Equal(rec.Key, []byte("big")) {
			t.Errorf("the letter has %d bytes of value and key %q, want none and big: a part of a payload is worse than none", len(rec.Value), rec.Key)
		}
	}
}

// arrivals notes when a consumer saw each event first.
type arrivals struct {
	mu   sync.Mutex
	seen map[string]time.Duration // event id: after its commit, which is the record's time
}

// watchArrivals consumes a topic until the test ends.
func watchArrivals(t *testing.T, k *kafkaserver.Server, topic string) *arrivals {
	t.Helper()
	a := &arrivals{seen: map[string]time.Duration{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	cl := k.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				a.mu.Lock()
				defer a.mu.Unlock()
				if id := oracle.EventID(r); a.seen[id] == 0 {
					a.seen[id] = max(1, time.Since(r.Timestamp))
				}
			})
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return a
}

func (a *arrivals) await(t *testing.T, id string, limit time.Duration) {
	t.Helper()
	rig.Eventually(t, "the arrival of event "+id, limit, func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.seen[id] == 0 {
			return fmt.Errorf("%d others have arrived", len(a.seen))
		}
		return nil
	})
}

// latest is the longest time from commit to arrival among the given events.
func (a *arrivals) latest(of map[string]bool) (late time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range of {
		late = max(late, a.seen[id])
	}
	return late
}
