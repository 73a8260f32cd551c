package config

import (
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

// table judges how the outbox table is read and written, beside the log or
// instead of it.
func (k *checking) table(path string, s *Source) {
	at := func(keys ...string) string { return join(path, keys...) }
	k.capture(at, s)
	k.afterPublish(at("after_publish"), s)
	k.poll(at, s)
	if s.catchesUp() {
		k.needsTable(at(s.database(), "on_gap"), "catch_up publishes what the table still holds", s)
	}
	if s.Retention.KeepPublished > 0 && s.AfterPublish != "mark" {
		k.refuse(at("retention", "keep_published"), "has no effect with after_publish: %s: no row says that it is published; write after_publish: mark, or leave it out",
			s.AfterPublish)
	}
}

func (k *checking) capture(at func(...string) string, s *Source) {
	pg := &s.Postgres
	switch {
	case s.reads(slot.CaptureLog):
		if s.Poll.Notify {
			k.refuse(at("poll", "notify"), "has no effect with capture: %s, which hears of rows by itself: leave it out", s.captureWord())
		}
		return
	case s.reads(slot.CapturePoll):
		if len(pg.Messages.Prefixes) > 0 {
			k.refuse(at("postgres", "messages"), "are in the log only, and capture: poll does not read it: write capture: log or auto, or leave messages out")
		}
		k.needsTable(at(s.database(), "capture"), "poll reads the table", s)
	case s.reads(slot.CaptureAuto):
		k.needsTable(at(s.database(), "capture"), "auto reads the table while the log cannot be read", s)
	}
}

// needsTable refuses what works on the table alone where there is none that tells
// what is done.
func (k *checking) needsTable(path, because string, s *Source) {
	switch {
	case !s.hasTable():
		k.refuse(path, "needs tables: %s, and only messages are named", because)
	case !s.keepsBooks():
		k.refuse(path, "needs bookkeeping, for leases and parked events: %s; give bookkeeping a schema, or leave the line out", because)
	case s.AfterPublish == "keep" && s.preset() == event.Debezium:
		k.refuse(path, "needs after_publish: delete: %s, and rows that are kept would be published again", because)
	case s.AfterPublish == "keep":
		k.refuse(path, "needs after_publish: mark or delete: %s, and rows that are kept would be published again", because)
	}
}

func (k *checking) afterPublish(path string, s *Source) {
	switch {
	case s.AfterPublish == "mark" && s.preset() == event.Debezium:
		k.refuse(path, "mark is not possible: rows of schema debezium have no column that says so; write delete or keep")
	case s.AfterPublish != "mark" && s.AfterPublish != "delete":
	case !s.hasTable():
		k.refuse(path, "%s has no effect: there are no tables, and messages have no rows; leave it out", s.AfterPublish)
	case !s.keepsBooks():
		k.refuse(path, "%s writes to the database, and bookkeeping: none says that nothing is written: write keep, or give bookkeeping a schema", s.AfterPublish)
	}
}

// shortestLease leaves room for a renewal that is late, and one more.
const shortestLease = 3 * time.Second

func (k *checking) poll(at func(...string) string, s *Source) {
	p := &s.Poll
	if p.Claim == "row" && s.preset() == event.Basic {
		k.refuse(at("poll", "claim"), "row is not possible: rows of schema basic have no column for a claim; write lease, or leave it out")
	}
	if p.Lease > 0 && p.Lease < shortestLease {
		k.refuse(at("poll", "lease"), "is too short: want %s or more, so that a slow answer loses nothing", shortestLease)
	}
	if p.ReclaimAfter > 0 && p.ReclaimAfter < p.Lease {
		k.refuse(at("poll", "reclaim_after"), "is less than poll.lease: a claim is not abandoned while its holder may be at it")
	}
	if p.BackoffMin > p.BackoffMax {
		k.refuse(at("poll", "backoff_min"), "is more than backoff_max")
	}
}

// parking refuses to put aside what some source has no place for.
func (k *checking) parking() {
	if k.c.Kafka.OnPoison != "park" {
		return
	}
	for _, s := range k.c.Sources {
		if !s.Value.keepsBooks() {
			k.refuse("kafka.on_poison", "park needs bookkeeping in every source, and source %s has none: write stop or dlq, or give it a schema", s.Key)
		}
	}
}

// unpolled warns of messages that wait for the log while the table is polled.
func (c *Config) unpolled() (found []Warning) {
	for _, s := range c.Sources {
		if pg := s.Value.Postgres; s.Value.reads(slot.CaptureAuto) && len(pg.Messages.Prefixes) > 0 {
			found = append(found, Warning{
				join("sources", s.Key, "postgres", "messages"),
				"messages are in the log only: while capture: auto polls they wait, and those of a lost slot are lost; table rows are not",
			})
		}
	}
	return found
}
