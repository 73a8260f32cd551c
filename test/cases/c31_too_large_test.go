package cases

// C31 Message larger than the topic allows
//
// Source: confluentinc/librdkafka#488, kafka4beam/wolff#64, dpkp/kafka-python#220, twmb/franz-go#1204 and #989.
//
// Ideal: the neighbours of a record that is too large are delivered once; it
// itself is parked or stops its source, by configuration, with its id, real size
// and limit; it passes once the limit is raised.
//
// Replaying a parked row comes with parking.

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const topicLimit = 100_000

// largeAmongSmall writes 20 small rows, one of 300 kB and 20 small ones, all for
// one partition, some of its key; it returns the event id of the large one.
func largeAmongSmall(t *testing.T, l *ledger) (large string) {
	t.Helper()
	for range 10 {
		l.write(t, "big", "small")
	}
	l.pad = 300_000
	large = l.write(t, "big")[0]
	l.pad = 0
	for range 10 {
		l.write(t, "small", "big")
	}
	return large
}

func TestC31TooLargeRecordGoesToTheDeadLettersAloneAndPassesUnderAHigherLimit(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, map[string]string{"max.message.bytes": strconv.Itoa(topicLimit)}))
	letters := k.Topic(t, 1, nil)
	h.Kafka = "on_poison: dlq\ndlq_topic: " + letters
	h.Init(t)
	r := h.Start(t)
	l := newLedger(h)
	large := largeAmongSmall(t, l)
	l.drained(t, soon)
	r.WaitReady(soon)
	l.judge(t, append(k.Consume(t, h.Topic), k.Consume(t, letters)...), 0)
	if n := len(k.Consume(t, h.Topic)); n != 40 {
		t.Errorf("%d small rows arrived, want 40", n)
	}
	letter := k.Consume(t, letters)[0]
	if oracle.EventID(letter) != large || string(letter.Key) != "big" || len(letter.Value) < 300_000 {
		t.Errorf("the letter is of event %s, key %s, with %d bytes; want %s, big, whole", oracle.EventID(letter), letter.Key, len(letter.Value), large)
	}
	reason, _ := header(letter, "walrelay_dlq_reason")
	size, _ := header(letter, "walrelay_dlq_size")
	limit, _ := header(letter, "walrelay_dlq_limit")
	contains(t, "the letter's reason", reason, large, h.Topic, strconv.Itoa(topicLimit), size)
	if n, _ := strconv.Atoi(size); n <= len(letter.Value) || limit != strconv.Itoa(topicLimit) {
		t.Errorf("the letter names size %s and limit %s", size, limit)
	}

	raise(t, k, h.Topic, 1_000_000)
	rig.Eventually(t, "a large row in its own topic", 2*time.Minute, func() error {
		more := newLedger(h)
		more.pad = 300_000
		more.write(t, "big")
		more.drained(t, soon)
		for _, rec := range k.Consume(t, h.Topic) {
			if len(rec.Value) > 300_000 {
				return nil
			}
		}
		return errorText("it went to the dead letters")
	})
}

func TestC31TooLargeRecordStopsItsSourceByNameAndGoesOnUnderAHigherLimit(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	// A server of its own: others' commits would blur what a position has passed.
	h := rig.NewHouse(t, pgserver.Start(t, pgserver.Options{Version: pgserver.V15}), k.Brokers(), k.Topic(t, 1, map[string]string{"max.message.bytes": strconv.Itoa(topicLimit)}))
	h.Kafka = "on_poison: stop"
	h.Init(t)
	r := h.Start(t)
	l := newLedger(h)
	looks := watchSlot(t, h)
	large := largeAmongSmall(t, l)
	reason := r.WaitNotReady(soon, large)
	contains(t, "/readyz", reason, h.Topic, "public.outbox", strconv.Itoa(topicLimit), "300")
	neverPast(t, looks.stop(), l.floor(20))
	for _, rec := range k.Consume(t, h.Topic) {
		if oracle.EventID(rec) == large {
			t.Error("the large record arrived")
		}
	}
	// Its limit is raised while the relay stands; it goes on with the next start.
	raise(t, k, h.Topic, 1_000_000)
	if code, took := r.Stop(); took > 10*time.Second {
		t.Errorf("the stop of a halted relay took %s and exited %d", took, code)
	}
	h.Start(t).WaitReady(soon)
	l.drained(t, soon)
	// Neighbours that Kafka had and the slot had not may come again: the stop was not clean.
	l.judge(t, k.Consume(t, h.Topic), 20)
}

// raise sets a topic's max.message.bytes.
func raise(t *testing.T, k *kafkaserver.Server, topic string, limit int) {
	t.Helper()
	value := fmt.Sprint(limit)
	resp, err := k.Admin(t).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &value}}, topic)
	if err != nil || resp[0].Err != nil {
		t.Fatalf("raise the limit of %s: %v %v", topic, err, resp)
	}
}
