package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/hlc"
)

// fact is what a record of one of the topics says.
type fact struct {
	topic, order, id, cause, correlation, stamp string
}

// account is the book of what was published.
type account struct {
	mu          sync.Mutex
	seen        map[string]bool // event ids
	placed      map[string]fact // by order
	paid        map[string][]fact
	redelivered int // published again
}

func newAccount() *account {
	return &account{seen: map[string]bool{}, placed: map[string]fact{}, paid: map[string][]fact{}}
}

func factOf(r *kgo.Record) fact {
	f := fact{topic: r.Topic, order: string(r.Key)}
	for _, h := range r.Headers {
		switch h.Key {
		case "forze_event_id":
			f.id = string(h.Value)
		case "forze_causation_id":
			f.cause = string(h.Value)
		case "forze_correlation_id":
			f.correlation = string(h.Value)
		case "forze_hlc":
			f.stamp = string(h.Value)
		}
	}
	return f
}

// add takes in a record. An event that was published twice counts once: that is
// allowed after a crash of the relay.
func (a *account) add(f fact) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen[f.id] {
		a.redelivered++
		return
	}
	a.seen[f.id] = true
	if f.topic == ordersTopic {
		a.placed[f.order] = f
	} else {
		a.paid[f.order] = append(a.paid[f.order], f)
	}
}

// payments is how many orders have a payment.
func (a *account) payments() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.paid)
}

// books are what the services' databases hold: the orders, and how often each was paid.
type books struct {
	orders   []string
	payments map[string]int
}

// summary is the last line, with what is wrong.
type summary struct {
	orders, paid, missing, doubled, before, redelivered int
	// skipped is how many deliveries the inbox recognized.
	skipped    int
	complaints []string
}

// judge compares what was published with the books.
func (a *account) judge(b books) summary {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := summary{orders: len(b.orders), redelivered: a.redelivered}
	complain := func(count *int, format string, args ...any) {
		*count++
		s.complaints = append(s.complaints, fmt.Sprintf(format, args...))
	}
	for _, order := range b.orders {
		placed, events, rows := a.placed[order], a.paid[order], b.payments[order]
		switch {
		case placed.id == "":
			complain(&s.missing, "%s was placed and not published", order)
		case len(events) == 0 || rows == 0:
			complain(&s.missing, "%s is paid in %d rows and %d events", order, rows, len(events))
		case len(events) > 1 || rows > 1:
			complain(&s.doubled, "%s is paid in %d rows and %d events", order, rows, len(events))
		default:
			s.paid++
		}
		for _, paid := range events {
			if !after(paid.stamp, placed.stamp) {
				complain(&s.before, "%s is paid at %q and was placed at %q", order, paid.stamp, placed.stamp)
			}
			if paid.cause != placed.id || paid.correlation != placed.correlation {
				s.complaints = append(s.complaints, fmt.Sprintf("the payment of %s names %s as its cause and %s as correlation, want %s and %s",
					order, paid.cause, paid.correlation, placed.id, placed.correlation))
			}
		}
	}
	known := map[string]bool{}
	for _, order := range b.orders {
		known[order] = true
	}
	for _, order := range slices.Sorted(maps.Keys(a.paid)) {
		if !known[order] {
			s.complaints = append(s.complaints, fmt.Sprintf("%s was paid and never placed", order))
		}
	}
	return s
}

// after reports whether the first stamp is greater; a missing one is not.
func after(effect, cause string) bool {
	e, err := hlc.Parse(effect)
	if err != nil {
		return false
	}
	c, err := hlc.Parse(cause)
	return err == nil && e > c
}

func (s summary) clean() bool { return len(s.complaints) == 0 && s.paid == s.orders }

func (s summary) String() string {
	return fmt.Sprintf("examples: orders=%d paid=%d missing=%d doubled=%d before_their_order=%d redelivered=%d skipped=%d",
		s.orders, s.paid, s.missing, s.doubled, s.before, s.redelivered, s.skipped)
}
