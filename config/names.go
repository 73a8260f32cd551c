package config

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// derive fills the names and defaults that follow from other options.
func (c *Config) derive() {
	if c.Kafka.ClientID == "" {
		c.Kafka.ClientID = "walrelay-" + c.Name
		c.inherit("kafka.client_id")
	}
	for i := range c.Sources {
		e := &c.Sources[i]
		c.dropUnused(e.Key, &e.Value)
		if !e.Value.isMongo() {
			c.derivePostgres(e.Key, &e.Value.Postgres)
		}
		c.deriveTable(e.Key, &e.Value)
	}
	if c.Kafka.OnPoison == "" {
		c.Kafka.OnPoison = c.onPoison()
	}
}

// derivePostgres names slot and publication.
func (c *Config) derivePostgres(source string, pg *Postgres) {
	name := defaultName(c.Name, source)
	if pg.Slot == "" {
		pg.Slot = name
		c.inherit(join("sources", source, "postgres", "slot"))
	}
	if pg.Publication == "" {
		pg.Publication = name
		c.inherit(join("sources", source, "postgres", "publication"))
	}
	pg.Publication = unquoteName(pg.Publication)
	pg.Role = unquoteName(pg.Role)
	pg.Bookkeeping = unquoteName(pg.Bookkeeping)
	// Both spellings mean the same; the effective configuration has one.
	pg.Messages.AllowNontransactional = pg.Messages.AllowNontransactional || pg.MessagesAllowNontransactional
	pg.MessagesAllowNontransactional = false
}

// inherit hides what is made of a hidden name.
func (c *Config) inherit(path string) {
	if c.isHidden("name") {
		c.hidden[path] = struct{}{}
	}
}

// defaultName is walrelay_<name>_<source> in the alphabet of slot names. A name
// that has to be cut ends in a hash, so that two long names stay different.
func defaultName(name, source string) string {
	whole := "walrelay_" + name + "_" + source
	s := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '_'
		}
	}, whole)
	if len(s) <= maxIdentifier {
		return s
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(whole))
	return fmt.Sprintf("%s_%08x", s[:maxIdentifier-9], h.Sum32())
}

// unquoteName accepts SQL's quotes around a name that is taken as it stands.
func unquoteName(s string) string {
	if len(s) > 2 && strings.HasPrefix(s, `"`) {
		if name, rest, err := quotedIdentifier(s[1:]); err == nil && rest == "" {
			return name
		}
	}
	return s
}
