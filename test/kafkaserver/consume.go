package kafkaserver

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumeWithin bounds a reading to the end.
const consumeWithin = 120 * time.Second

// Consume reads the topics from their beginning up to where they end now, and
// returns the records by topic, partition and offset. Records of open and
// aborted transactions are among them; ConsumeCommitted leaves them out.
func Consume(t testing.TB, brokers []string, topics ...string) []*kgo.Record {
	t.Helper()
	return slices.DeleteFunc(consume(t, brokers, topics), func(r *kgo.Record) bool { return r.Attrs.IsControl() })
}

// ConsumeCommitted reads as Consume does and returns what a read_committed
// consumer sees.
func ConsumeCommitted(t testing.TB, brokers []string, topics ...string) []*kgo.Record {
	t.Helper()
	return committed(consume(t, brokers, topics))
}

// Consume reads through the unauthenticated listener; see the function Consume.
func (s *Server) Consume(t testing.TB, topics ...string) []*kgo.Record {
	t.Helper()
	return Consume(t, s.internal(), topics...)
}

// ConsumeCommitted reads through the unauthenticated listener; see the function.
func (s *Server) ConsumeCommitted(t testing.TB, topics ...string) []*kgo.Record {
	t.Helper()
	return ConsumeCommitted(t, s.internal(), topics...)
}

// ConsumeN waits until the topics hold n records, reads on to the end, and
// returns all as Consume does, so more than n show. The test fails when n are
// not there after the limit.
func (s *Server) ConsumeN(t testing.TB, n int, limit time.Duration, topics ...string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cl := s.Client(t, kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for seen := 0; seen < n; {
		fetches := cl.PollFetches(ctx)
		seen += fetches.NumRecords()
		if ctx.Err() != nil && seen < n {
			t.Fatalf("%d records in %v after %s, want %d", seen, topics, limit, n)
		}
	}
	return s.Consume(t, topics...)
}

// consume returns all records, control records included: the marker that ends a
// transaction takes an offset, and only by seeing it is the end known to be reached.
func consume(t testing.TB, brokers []string, topics []string) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), consumeWithin)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.KeepControlRecords(), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		t.Fatalf("consume %v: %v", topics, err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	starts, err := admin.ListStartOffsets(ctx, topics...)
	if err != nil || starts.Error() != nil {
		t.Fatalf("consume %v: list start offsets: %v %v", topics, err, starts.Error())
	}
	ends, err := admin.ListEndOffsets(ctx, topics...)
	if err != nil || ends.Error() != nil {
		t.Fatalf("consume %v: list end offsets: %v %v", topics, err, ends.Error())
	}
	type partition struct {
		topic string
		id    int32
	}
	missing := map[partition]int64{} // end offset of those not read to the end
	from := map[string]map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		if end.Offset <= start.Offset {
			return
		}
		missing[partition{end.Topic, end.Partition}] = end.Offset
		if from[end.Topic] == nil {
			from[end.Topic] = map[int32]kgo.Offset{}
		}
		from[end.Topic][end.Partition] = kgo.NewOffset().At(start.Offset)
	})
	cl.AddConsumePartitions(from)
	var records []*kgo.Record
	for len(missing) > 0 {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("consume %v: %d partitions not read to the end after %s: %v", topics, len(missing), consumeWithin, missing)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			p := partition{r.Topic, r.Partition}
			end, open := missing[p]
			if !open || r.Offset >= end {
				delete(missing, p)
				return
			}
			records = append(records, r)
			if r.Offset == end-1 {
				delete(missing, p)
			}
		})
	}
	slices.SortFunc(records, func(a, b *kgo.Record) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return records
}

// committed leaves out control records and the records of transactions that
// were aborted or are still open. A transaction is known by its producer: one
// has at most one open per partition.
func committed(all []*kgo.Record) []*kgo.Record {
	type producer struct {
		topic     string
		partition int32
		id        int64
	}
	outcome := make([]bool, len(all))
	open := map[producer][]int{} // indexes into all
	for i, r := range all {
		p := producer{r.Topic, r.Partition, r.ProducerID}
		switch {
		case r.Attrs.IsControl():
			// The key of a marker: version int16, type int16; type 1 is commit, 0 abort.
			isCommit := len(r.Key) >= 4 && binary.BigEndian.Uint16(r.Key[2:]) == 1
			for _, j := range open[p] {
				outcome[j] = isCommit
			}
			delete(open, p)
		case r.Attrs.IsTransactional():
			open[p] = append(open[p], i)
		default:
			outcome[i] = true
		}
	}
	var kept []*kgo.Record
	for i, r := range all {
		if outcome[i] {
			kept = append(kept, r)
		}
	}
	return kept
}
