package config

import "github.com/walrelay/walrelay/slot"

// SlotOptions are the options of package slot for one source. The error is nil
// for every source of a loaded configuration.
func (c *Config) SlotOptions(source string) (slot.Options, error) {
	s, schema, err := c.source(source)
	if err != nil {
		return slot.Options{}, err
	}
	pg := &s.Postgres
	o := slot.Options{
		Source:                source,
		Marker:                c.Name + "/" + source,
		DSN:                   pg.URL.Reveal(),
		Role:                  pg.Role,
		Slot:                  pg.Slot,
		Publication:           pg.Publication,
		Messages:              pg.Messages.Prefixes,
		AllowNonTransactional: pg.Messages.AllowNontransactional,
		Schema:                schema,
		Failover:              pg.Failover,
		Ordered:               c.ordered() && pg.Capture != string(slot.CapturePoll),
		Producers:             pg.Producers,
		Capture:               slot.Capture(pg.Capture),
		OnGap:                 slot.OnGap(pg.OnGap),
		WriteBack:             slot.WriteBack(s.AfterPublish),
		ClaimRows:             s.Poll.Claim == "row",
		Notify:                s.Poll.Notify,
		Retains:               s.Retention.KeepPublished > 0,
		ExtraColumns:          s.extraColumns(),
		AllowRowFilter:        pg.AllowRowFilter,
		Bookkeeping:           pg.Bookkeeping,
		StatusInterval:        pg.StatusInterval,
		CheckInterval:         pg.CheckInterval,
		WireTimeout:           pg.WireTimeout,
		ReconnectMax:          pg.ReconnectMax,
		MaxEventBytes:         int64(pg.MaxEventBytes),
		InFlightBytes:         int64(pg.InFlightBytes),
	}
	for _, t := range pg.Tables {
		o.Tables = append(o.Tables, slot.Table{Schema: t.Schema, Name: t.Name})
	}
	return o.WithDefaults(), nil
}
