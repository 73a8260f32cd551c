package main

import (
	"strings"
	"testing"
	"time"
)

func TestTallyTellsLostDoubledDisorderedAndUncommitted(t *testing.T) {
	t.Parallel()
	at := func(key string, n int, id string, partition int32) arrival {
		return arrival{id: id, key: key, n: n, partition: partition, at: time.Now()}
	}
	commit := func(ta *tally, events ...written) {
		ta.committing(events)
		ta.settled(events)
	}
	a1, a2, b1 := written{id: "a1", key: "a", n: 1}, written{id: "a2", key: "a", n: 2}, written{id: "b1", key: "b", n: 1}
	for _, c := range []struct {
		name     string
		arrivals []arrival
		want     string
		clean    bool
	}{
		{"all in order", []arrival{at("a", 1, "a1", 0), at("b", 1, "b1", 1), at("a", 2, "a2", 0)}, "events=3 lost=0 duplicates=0 out_of_order=0", true},
		{"one is lost", []arrival{at("a", 1, "a1", 0), at("b", 1, "b1", 1)}, "events=3 lost=1 duplicates=0 out_of_order=0", false},
		{"one comes twice", []arrival{at("a", 1, "a1", 0), at("a", 2, "a2", 0), at("a", 1, "a1", 0), at("b", 1, "b1", 1)}, "events=3 lost=0 duplicates=1 out_of_order=0", false},
		{"two change places", []arrival{at("a", 2, "a2", 0), at("a", 1, "a1", 0), at("b", 1, "b1", 1)}, "events=3 lost=0 duplicates=0 out_of_order=1", false},
		{"a key moves", []arrival{at("a", 1, "a1", 0), at("a", 2, "a2", 1), at("b", 1, "b1", 1)}, "events=3 lost=0 duplicates=0 out_of_order=1", false},
		{"one was rolled back", []arrival{at("a", 1, "a1", 0), at("a", 2, "a2", 0), at("b", 1, "b1", 1), at("b", 2, "gone", 1)}, "events=3 lost=0 duplicates=0 out_of_order=0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ta := newTally()
			commit(ta, a1, a2)
			commit(ta, b1)
			for _, x := range c.arrivals {
				ta.take(x)
			}
			s := ta.summary()
			if got := s.String(); !strings.HasPrefix(got, "demo: "+c.want+" p50_ms=") {
				t.Errorf("summary %q, want %q", got, c.want)
			}
			if s.clean() != c.clean {
				t.Errorf("clean is %t, want %t; complaints %q", s.clean(), c.clean, s.complaints)
			}
		})
	}
}
