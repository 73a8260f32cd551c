package cases

// C34 Partitions added while running
//
// Source: raven-im/raven#103, twmb/franz-go#711.
//
// Ideal: the change is in the log and in a metric with old and new count; of each
// key the last record in the old partition was acknowledged before the first in
// the new one is sent; the count can be pinned.
//
// One broker takes requests in turn and so helps to keep that order; that the relay
// itself waits is shown in package publish (TestMorePartitionsWaitForWhatIsUnderWay).

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC34KeysMoveWholeWhenPartitionsAreAddedAndNotAtAllWhenPinned(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	// The broker's own clock in the records tells which of two partitions was written first.
	appended := map[string]string{"message.timestamp.type": "LogAppendTime"}
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V17), k.Brokers(), k.Topic(t, 3, appended))
	pinned := k.Topic(t, 3, appended)
	h.Routes = fmt.Sprintf("pinned: {topic: %s, pin_partitions: 3}", pinned)
	h.Init(t)
	r := h.Start(t)
	r.WaitReady(readyWithin)

	free, tied := newLedger(h), newLedger(h)
	tied.insert = strings.Replace(forzeInsert, "'orders'", "'pinned'", 1)
	stopFree, stopTied := free.keepWriting(t, 5*time.Millisecond), tied.keepWriting(t, 10*time.Millisecond)
	k.ConsumeN(t, 500, soon, h.Topic)
	for _, topic := range []string{h.Topic, pinned} {
		if resp, err := k.Admin(t).UpdatePartitions(t.Context(), 6, topic); err != nil || resp[topic].Err != nil {
			t.Fatalf("add partitions to %s: %v %v", topic, err, resp)
		}
	}
	rig.Eventually(t, "a change of partitions in the metrics", 90*time.Second, func() error {
		if r.Metric("walrelay_topic_partition_changes_total") != 1 {
			return errorText("there is none")
		}
		return nil
	})
	n := len(free.committed())
	k.ConsumeN(t, n+200, soon, h.Topic)
	stopFree()
	stopTied()
	free.drained(t, soon)
	tied.drained(t, soon)

	tied.judge(t, k.Consume(t, pinned), 0)
	records := k.Consume(t, h.Topic)
	verdict := oracle.Check(free.committed(), records)
	if verdict.Misplaced == 0 {
		t.Error("no key has moved: the test tests nothing")
	}
	// A moved key is not misplaced here; its order is looked at below.
	if verdict.Misplaced = 0; !verdict.Clean() {
		t.Errorf("want nothing lost, doubled or out of order, have %s", verdict)
	}
	seq := map[string]int64{}
	for _, c := range free.committed() {
		seq[c.EventID] = c.Seq
	}
	type stay struct {
		first, last  int64
		began, ended time.Time
	}
	stays := map[string]map[int32]*stay{}
	for _, rec := range records {
		key, at := string(rec.Key), seq[oracle.EventID(rec)]
		if stays[key] == nil {
			stays[key] = map[int32]*stay{}
		}
		s := stays[key][rec.Partition]
		if s == nil {
			s = &stay{first: at, began: rec.Timestamp}
			stays[key][rec.Partition] = s
		}
		s.last, s.ended = at, rec.Timestamp
	}
	for key, of := range stays {
		if len(of) > 2 {
			t.Errorf("key %s was in %d partitions, want at most the old one and the new one", key, len(of))
		}
		for p, a := range of {
			for q, b := range of {
				if p == q || a.first > b.first {
					continue
				}
				if a.last > b.first || a.ended.After(b.began) {
					t.Errorf("key %s: partition %d got event %d at %s, when partition %d had got event %d at %s already",
						key, p, a.last, a.ended.Format(time.StampMilli), q, b.first, b.began.Format(time.StampMilli))
				}
			}
		}
	}
	var line string
	for l := range strings.Lines(r.Log()) {
		if strings.Contains(l, "partition") && strings.Contains(l, h.Topic) {
			line = l
		}
	}
	contains(t, "the log's line on partitions", line, "3", "6", h.Topic)
	stopsClean(t, r)
}
