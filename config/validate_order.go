package config

import (
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

// order refuses an order that could not be kept.
func (k *checking) order() {
	first := map[string]*Entry[Route]{}
	for i := range k.c.Routes {
		r := &k.c.Routes[i]
		at := join("routes", r.Key)
		if r.Value.Order != "hlc" && r.Value.WithinKey == "commit" {
			k.refuse(join(at, "within_key"), "has no effect with order: commit, which keeps that order everywhere: leave it out, or write order: hlc")
		}
		if r.Value.Order == "hlc" && r.Value.Partition != "key" {
			k.refuse(join(at, "order"), "hlc has no effect with partition: %s, which gives up every order", r.Value.Partition)
		}
		topic := r.Value.Topic
		if topic == "" || strings.Contains(topic, "{") {
			continue
		}
		if other := first[topic]; other == nil {
			first[topic] = r
		} else if other.Value.order() != r.Value.order() {
			k.refuse(join(at, "order"), "differs from that of route %s, which has the same topic: one topic has one order", quoteForPeople(other.Key))
		}
	}
}

// unordered warns of sources that a route with order: hlc cannot wait for.
func (c *Config) unordered() (found []Warning) {
	if !c.ordered() {
		return nil
	}
	for _, s := range c.Sources {
		schema, err := s.Value.Schema.event()
		switch {
		case s.Value.reads(slot.CapturePoll):
			found = append(found, Warning{
				join("sources", s.Key, s.Value.database(), "capture"),
				"poll does not say what is still to come, and a route says order: hlc: nobody waits for events of this source, and those that come late are counted",
			})
		case err == nil && schema.Columns[event.HLC] == "" && s.Value.hasTable():
			found = append(found, Warning{
				join("sources", s.Key, "schema"),
				"names no column for stamps, and a route says order: hlc: events of this source take the place of their commit; name the column with schema.columns.hlc",
			})
		}
	}
	return found
}
