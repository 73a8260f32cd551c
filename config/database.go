package config

import (
	"github.com/walrelay/walrelay/slot"
)

// A source reads one database, of one kind. What the rest of the package asks of
// it is the same for all kinds.

// isMongo reports whether the source reads a replica set: the section has a default else.
func (s *Source) isMongo() bool { return s.Mongo.Capture != "" }

// dropUnused forgets the defaults of the kind that the source does not have, so that
// nothing of it is printed or judged. Where neither is named it is Postgres that is missing.
func (c *Config) dropUnused(name string, s *Source) {
	if c.given(join("sources", name, "mongo")) {
		if !c.given(join("sources", name, "postgres")) {
			s.Postgres = Postgres{}
		}
		return
	}
	s.Mongo = Mongo{}
}

// mode is how events are found, in the words of Postgres: log, poll or auto.
func (s *Source) mode() string {
	switch {
	case !s.isMongo():
		return s.Postgres.Capture
	case s.Mongo.Capture == "stream":
		return string(slot.CaptureLog)
	}
	return s.Mongo.Capture
}

// captureWord is how the configuration itself says it.
func (s *Source) captureWord() string {
	if s.isMongo() {
		return s.Mongo.Capture
	}
	return s.Postgres.Capture
}

func (s *Source) reads(capture slot.Capture) bool { return s.mode() == string(capture) }

// database is the key of the section that names the database.
func (s *Source) database() string {
	if s.isMongo() {
		return "mongo"
	}
	return "postgres"
}

// hasTable reports whether there are rows (or documents) to write back to.
func (s *Source) hasTable() bool { return s.isMongo() || len(s.Postgres.Tables) > 0 }

// keepsBooks reports whether walrelay has tables of its own in the database.
func (s *Source) keepsBooks() bool {
	if s.isMongo() {
		return s.Mongo.Bookkeeping != slot.NoBookkeeping
	}
	return s.Postgres.Bookkeeping != slot.NoBookkeeping
}

// catchesUp reports whether a lost position is made up for from the table.
func (s *Source) catchesUp() bool {
	return s.Postgres.OnGap == string(slot.GapCatchUp) || s.Mongo.OnGap == string(slot.GapCatchUp)
}
