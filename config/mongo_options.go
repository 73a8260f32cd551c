package config

import (
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
	"github.com/walrelay/walrelay/outbox/mongo"
	"github.com/walrelay/walrelay/slot"
)

// IsMongo reports whether the source reads a replica set.
func (c *Config) IsMongo(source string) bool {
	s, _, err := c.source(source)
	return err == nil && s.isMongo()
}

// MongoOptions are the options of package mongostream for one source. The error is
// nil for every Mongo source of a loaded configuration.
func (c *Config) MongoOptions(source string) (mongostream.Options, error) {
	s, schema, err := c.source(source)
	if err != nil {
		return mongostream.Options{}, err
	}
	m := &s.Mongo
	return mongostream.Options{
		Source:          source,
		Marker:          c.Name + "/" + source,
		URL:             m.URL.Reveal(),
		Database:        m.Database,
		Collection:      m.Collection,
		Schema:          schema,
		Extra:           s.extraColumns(),
		Format:          m.format(),
		Bookkeeping:     m.Bookkeeping,
		Capture:         mongostream.Capture(m.Capture),
		OnGap:           mongostream.OnGap(m.OnGap),
		OnDrop:          mongostream.OnDrop(m.OnDrop),
		WriteBack:       mongostream.WriteBack(s.AfterPublish),
		MissingHLC:      mongostream.MissingHLC(m.MissingHLC),
		Retains:         s.Retention.KeepPublished > 0,
		Ordered:         c.ordered() && m.Capture != string(slot.CapturePoll),
		BatchSize:       int32(m.BatchSize),
		MaxAwait:        m.MaxAwait,
		CheckpointEvery: m.CheckpointEvery,
		CheckInterval:   m.CheckInterval,
		LeaseTTL:        m.Lease,
		WireTimeout:     m.WireTimeout,
		ReconnectMax:    m.ReconnectMax,
		MaxEventBytes:   int64(m.MaxEventBytes),
		InFlightBytes:   int64(m.InFlightBytes),
	}.WithDefaults(), nil
}

// format is how payloads are written, as the rooms know it.
func (m *Mongo) format() bsonjson.Options {
	return bsonjson.Options{
		Format: map[string]bsonjson.Format{
			"relaxed": bsonjson.Relaxed, "canonical": bsonjson.Canonical, "bson": bsonjson.BSON,
		}[m.Payload], // plain is zero
		LegacyUUID: map[string]bsonjson.LegacyUUID{
			"java": bsonjson.LegacyJava, "csharp": bsonjson.LegacyCSharp, "python": bsonjson.LegacyPython,
		}[m.LegacyUUID],
	}
}

// CollectionOptions are the options of package outbox/mongo for one source, but for
// Client and Classify, which are the caller's. The error is nil for every Mongo source of a
// loaded configuration.
func (c *Config) CollectionOptions(source string) (mongo.Options, error) {
	s, schema, err := c.source(source)
	if err != nil {
		return mongo.Options{}, err
	}
	m := &s.Mongo
	return mongo.Options{
		Source:       source,
		Owner:        c.Name + "/" + source,
		Database:     m.Database,
		Collection:   m.Collection,
		Schema:       schema,
		Extra:        s.extraColumns(),
		MaxPayload:   int64(m.MaxEventBytes),
		Format:       m.format(),
		AfterPublish: mongo.AfterPublish(s.AfterPublish),
		Claim:        mongo.ClaimMode(s.Poll.Claim),
		MissingHLC:   mongo.MissingHLC(m.MissingHLC),
		Bookkeeping:  m.Bookkeeping,
		ParkedBudget: s.ParkedBudget,
	}, nil
}
