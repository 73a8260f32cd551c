package config

import (
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/outbox/postgres"
	"github.com/walrelay/walrelay/slot"
)

// Capture is how the events of a source are found.
func (c *Config) Capture(source string) slot.Capture {
	s, _, err := c.source(source)
	if err != nil {
		return slot.CaptureLog
	}
	return slot.Capture(s.mode())
}

// OnGap is what happens when the position of a source is lost.
func (c *Config) OnGap(source string) slot.OnGap {
	s, _, err := c.source(source)
	if err != nil {
		return slot.GapStop
	}
	if s.catchesUp() {
		return slot.GapCatchUp
	}
	return slot.GapStop
}

// WriteBack is what is written to a row of the source once it is published; KeepRows where
// there are no rows.
func (c *Config) WriteBack(source string) slot.WriteBack {
	s, _, err := c.source(source)
	if err != nil || !s.hasTable() || s.AfterPublish == "" {
		return slot.KeepRows
	}
	return slot.WriteBack(s.AfterPublish)
}

// HasTable reports whether the source has rows (or documents), and not only messages.
func (c *Config) HasTable(source string) bool {
	s, _, err := c.source(source)
	return err == nil && s.hasTable()
}

// KeepsBooks reports whether walrelay has tables (or collections) of its own in the
// source's database.
func (c *Config) KeepsBooks(source string) bool {
	s, _, err := c.source(source)
	return err == nil && s.keepsBooks()
}

// OutboxOptions are the options of package outbox for one source. The error is
// nil for every source of a loaded configuration.
func (c *Config) OutboxOptions(source string) (outbox.Options, error) {
	s, _, err := c.source(source)
	if err != nil {
		return outbox.Options{}, err
	}
	o := outbox.Options{
		Source:        source,
		Batch:         s.Poll.Batch,
		Interval:      s.Poll.Interval,
		Shards:        s.Poll.Shards,
		LeaseTTL:      s.Poll.Lease,
		ReclaimAfter:  s.Poll.ReclaimAfter,
		Attempts:      s.Poll.Attempts,
		BackoffMin:    s.Poll.BackoffMin,
		BackoffMax:    s.Poll.BackoffMax,
		SweepEvery:    s.SweepEvery,
		KeepPublished: s.Retention.KeepPublished,
		RetainBatch:   s.Retention.Batch,
		RetainEvery:   s.Retention.Every,
	}
	for _, r := range c.Routes {
		if !r.Value.HoldBack {
			o.Loose = append(o.Loose, r.Key)
		}
	}
	return o.WithDefaults(), nil
}

// TableOptions are the options of package outbox/postgres for one source, but for
// Connect and Classify, which are the caller's. The error is nil for every source
// of a loaded configuration.
func (c *Config) TableOptions(source string) (postgres.Options, error) {
	s, schema, err := c.source(source)
	if err != nil {
		return postgres.Options{}, err
	}
	o := postgres.Options{
		Source:       source,
		Owner:        c.Name + "/" + source,
		Schema:       schema,
		ExtraColumns: s.extraColumns(),
		AfterPublish: postgres.AfterPublish(s.AfterPublish),
		Claim:        postgres.ClaimMode(s.Poll.Claim),
		ParkedBudget: s.ParkedBudget,
	}
	for _, t := range s.Postgres.Tables {
		o.Tables = append(o.Tables, postgres.Name{Schema: t.Schema, Name: t.Name})
	}
	if s.keepsBooks() {
		o.Bookkeeping = s.Postgres.Bookkeeping
	}
	return o, nil
}

// extraColumns are the columns that become headers. Two headers may be made of
// one column, which is read once.
func (s *Source) extraColumns() (columns []string) {
	seen := map[string]bool{}
	for _, h := range s.Headers {
		if !seen[h.Value] {
			seen[h.Value] = true
			columns = append(columns, h.Value)
		}
	}
	return columns
}
