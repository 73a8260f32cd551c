package ops_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

// Case C73: names from data never make the number of series grow.
func TestFiftyThousandTopicsNeverMakeAThousandSeries(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{Name: "shop"})
	s := o.Source("orders", ops.SourceProbes{})
	tabled(o)
	s.SlotReport(event.SlotReport{Slot: "a", WALStatus: "reserved", SafeBytes: 1})
	b := o.Broker()
	for i := range 50_000 {
		topic := fmt.Sprintf("tenant-%d", i)
		switch i % 1000 {
		case 1:
			topic = fmt.Sprintf("bad-\xff\xfe-%d", i)
		case 2:
			topic = "other"
		case 3:
			topic = strings.Repeat("x", 300) + topic
		}
		b.Published(topic, 1, 10)
		b.Retried(topic, 1)
		b.DeadLettered(topic)
		b.Condition(topic, event.Condition{What: "no leader"})
		s.Refused(topic, "reason "+topic)
		s.Ignored("reason "+topic, 1)
	}
	families, series := scrape(t, o)
	if series >= 1000 {
		t.Errorf("%d series, want < 1000", series)
	}
	sum := 0.0
	for _, m := range families["walrelay_topic_records_total"].GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	if sum != 50_000 {
		t.Errorf("records of all topics: %v, want 50000: the bound must not lose counts", sum)
	}
	if rest, ok := value(t, families, "walrelay_topic_records_total", "other"); !ok || rest != 49_800 {
		t.Errorf("topic other counts %v, want 49800", rest)
	}
	if r := o.Readiness(); len(r.Broker) != 50 || r.BrokerReasons != 49_951 { // "other" 50 times
		t.Errorf("readiness lists %d of %d reasons, want 50 of 49951", len(r.Broker), r.BrokerReasons)
	}
}

func TestMalformedNamesNeverBreakTheScrape(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{Name: "bad \xff", Version: "\xfe"})
	s := o.Source("s\xff", ops.SourceProbes{})
	s.Refused("a\xffb", "\xff")
	s.Ignored("", 3)
	s.SlotReport(event.SlotReport{WALStatus: "new\xff word", Invalidation: "other"})
	// Both become the same name; they must share a series rather than collide.
	o.Broker().Published("a\xffb", 1, 1)
	o.Broker().Published("a\uFFFDb", 1, 1)
	o.Loop("l\xff", time.Minute)
	families, _ := scrape(t, o)
	if n, _ := value(t, families, "walrelay_topic_records_total", "a\uFFFDb"); n != 2 {
		t.Errorf("the topic counts %v records, want 2", n)
	}
}

func TestCountingAtTheSameTimeLosesNothing(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{})
	s := o.Source("orders", ops.SourceProbes{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				o.Broker().Published(fmt.Sprintf("t%d", (i*7+g)%300), 2, 3)
				s.Received(1, 1)
				s.Ignored(fmt.Sprintf("r%d", i%30), 1)
				if i%100 == 0 {
					o.Status()
				}
			}
		})
	}
	wg.Wait()
	var records, ignored int64
	st := o.Status()
	for _, x := range st.Broker.Topics {
		records += x.Records
	}
	for _, n := range st.Sources[0].Events.Ignored {
		ignored += n
	}
	if records != 8000 || ignored != 4000 || st.Sources[0].Events.Received != 4000 {
		t.Errorf("records %d, ignored %d, received %d; want 8000, 4000, 4000", records, ignored, st.Sources[0].Events.Received)
	}
}

func TestCountersOnThePathDoNotAllocate(t *testing.T) {
	o := ops.New(ops.Options{})
	s, b, beat := o.Source("orders", ops.SourceProbes{}), o.Broker(), o.Loop("feeder", time.Minute)
	b.Published("shop.orders", 1, 1)
	s.Ignored("foreign", 1)
	allocs := testing.AllocsPerRun(100, func() {
		s.Received(100, 5000)
		s.Published(100, 1_700_000_000_000_000)
		s.Ignored("foreign", 1)
		b.Published("shop.orders", 100, 5000)
		beat.Beat()
	})
	if allocs != 0 {
		t.Errorf("%v allocations per batch, want 0", allocs)
	}
}

func TestHistogramTakesManyEqualObservationsAsOne(t *testing.T) {
	t.Parallel()
	o := ops.New(ops.Options{})
	b := o.Broker()
	for range 10 {
		b.Latency(500 * time.Microsecond) // a bound belongs to its bucket
	}
	for range 5 {
		b.Latency(4 * time.Millisecond)
	}
	b.Latency(2 * time.Minute)
	b.Latency(-time.Second) // a clock that was set back counts as no time
	families, _ := scrape(t, o)
	h := families["walrelay_produce_to_ack_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 17 {
		t.Errorf("count %d, want 17", h.GetSampleCount())
	}
	for _, bk := range h.GetBucket() {
		want := uint64(11)
		if bk.GetUpperBound() >= .005 {
			want = 16
		}
		if bk.GetCumulativeCount() != want {
			t.Errorf("bucket %v holds %d, want %d", bk.GetUpperBound(), bk.GetCumulativeCount(), want)
		}
	}
	if sum := h.GetSampleSum(); sum < 120.0249 || sum > 120.0251 {
		t.Errorf("sum %v, want 120.025", sum)
	}
}
