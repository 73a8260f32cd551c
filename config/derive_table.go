package config

import (
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

// Claims of one statement are larger where they write nothing.
const (
	batchOfRowClaims   = 500
	batchOfLeaseClaims = 5000
)

// deriveTable fills what follows from the schema and the way of capture.
func (c *Config) deriveTable(name string, s *Source) {
	if s.AfterPublish == "" {
		s.AfterPublish = s.afterPublish()
	}
	if s.Poll.Claim == "" {
		s.Poll.Claim = "row"
		if s.preset() == event.Basic {
			s.Poll.Claim = "lease"
		}
	}
	if s.Poll.Batch == 0 && !c.given(join("sources", name, "poll", "batch")) {
		s.Poll.Batch = batchOfRowClaims
		if s.Poll.Claim == "lease" {
			s.Poll.Batch = batchOfLeaseClaims
		}
	}
}

// afterPublish is the default: rows are marked where they can be. A row of
// debezium can only be deleted, which nobody should be surprised by; polling
// cannot do without.
func (s *Source) afterPublish() string {
	switch {
	case !s.hasTable(), !s.keepsBooks():
		return "keep"
	case s.preset() != event.Debezium:
		return "mark"
	case s.reads(slot.CapturePoll):
		return "delete"
	default:
		return "keep"
	}
}

func (s *Source) preset() event.Preset { return event.Preset(s.Schema.Preset) }

// onPoison is the default: a poisoned event is put aside where every source has
// a place for it.
func (c *Config) onPoison() string {
	for i := range c.Sources {
		if !c.Sources[i].Value.keepsBooks() {
			return "stop"
		}
	}
	return "park"
}
