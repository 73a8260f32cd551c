package config

import (
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

func (k *checking) source(name string, s *Source) {
	path := join("sources", name)
	switch {
	case k.c.given(join(path, "mongo")):
		k.mongo(join(path, "mongo"), s)
	default:
		k.postgres(join(path, "postgres"), &s.Postgres)
	}
	var names []string
	for f := range event.NumFields {
		names = append(names, f.String())
	}
	for _, col := range s.Schema.Columns {
		at := join(path, "schema", "columns", col.Key)
		if _, ok := event.FieldByName(col.Key); !ok {
			if near, found := nearest(col.Key, names); found {
				k.refuse(at, "is no field: did you mean %s?", near)
			} else {
				k.refuse(at, "is no field; fields are %s", strings.Join(names, ", "))
			}
		}
		k.identifier(at, col.Value)
	}
	for _, h := range s.Headers {
		k.identifier(join(path, "headers", h.Key), h.Value)
	}
	k.table(path, s)
	if s.isMongo() {
		if m := join(path, "mongo"); !k.touched(m) && !k.touched(join(path, "schema")) {
			if o, err := k.c.MongoOptions(name); err == nil {
				k.judge(m, true, o.Validate())
			}
		}
		return
	}
	// The slot knows the rest.
	if pg := join(path, "postgres"); !k.touched(pg) && !k.touched(join(path, "schema")) {
		if o, err := k.c.SlotOptions(name); err == nil {
			o = o.WithDefaults()
			k.judge(pg, true, o.Validate())
		}
	}
}

// databases refuses a source with two databases, before more is said of either.
func (k *checking) databases() {
	for _, s := range k.c.Sources {
		mongo := join("sources", s.Key, "mongo")
		if k.c.given(mongo) && k.c.given(join("sources", s.Key, "postgres")) {
			k.refuse(mongo, "stands beside postgres: a source is one database; write two sources")
		}
	}
}

func (k *checking) postgres(path string, pg *Postgres) {
	at := func(keys ...string) string { return join(path, keys...) }
	if !pg.URL.IsZero() {
		if err := pg.URL.Check(); err != nil {
			k.refuse(at("url"), "the connection string %v", err)
		}
	}
	if len(pg.Tables) == 0 && len(pg.Messages.Prefixes) == 0 && !k.touched(path) {
		k.refuse(path, "names neither tables nor messages: there is nothing to read")
	}
	for i, m := range pg.Messages.Prefixes {
		if strings.IndexByte(m, 0) >= 0 {
			k.refuse(index(at("messages", "prefixes"), i), "a prefix cannot hold a NUL byte")
		}
	}
	if pg.Messages.AllowNontransactional && len(pg.Messages.Prefixes) == 0 {
		k.refuse(at("messages"), "allows non-transactional messages but names no prefixes")
	}
	if strings.Trim(pg.Slot, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || len(pg.Slot) > maxIdentifier {
		k.refuse(at("slot"), "%s is not possible: Postgres allows 1 to %d of the letters a-z, the digits and _ in the name of a slot",
			k.show(at("slot"), pg.Slot), maxIdentifier)
	}
	k.identifier(at("publication"), pg.Publication)
	k.identifier(at("role"), pg.Role)
	k.identifier(at("bookkeeping"), pg.Bookkeeping)
	if pg.MaxEventBytes > pg.InFlightBytes {
		k.refuse(at("max_event_bytes"), "is more than in_flight_bytes: one event could never be read")
	}
}

// identifier refuses what cannot be a name in Postgres.
func (k *checking) identifier(path, name string) {
	switch {
	case len(name) > maxIdentifier:
		k.refuse(path, "is a name of %d bytes: Postgres keeps %d", len(name), maxIdentifier)
	case strings.IndexByte(name, 0) >= 0:
		k.refuse(path, "holds a NUL byte")
	}
}

// slots refuses two sources that would fight for one slot. The same name on two
// servers is fine, as long as somebody meant it.
func (k *checking) slots() {
	first := map[string]int{}
	for i, s := range k.c.Sources {
		if s.Value.isMongo() || s.Value.reads(slot.CapturePoll) {
			continue
		}
		pg := s.Value.Postgres
		j, taken := first[pg.Slot]
		if !taken {
			first[pg.Slot] = i
			continue
		}
		other := k.c.Sources[j]
		path := join("sources", s.Key, "postgres", "slot")
		otherPath := join("sources", other.Key, "postgres", "slot")
		if pg.URL == other.Value.Postgres.URL || !k.c.given(path) || !k.c.given(otherPath) {
			k.refuse(path, "%s is the slot of source %s too: give each a slot of its own", k.show(path, pg.Slot), other.Key)
		}
	}
}

// folded warns of names that SQL reads in another way than they look.
func (c *Config) folded() (found []Warning) {
	for _, s := range c.Sources {
		for i, t := range s.Value.Postgres.Tables {
			if t.Folded {
				path := index(join("sources", s.Key, "postgres", "tables"), i)
				shown := t.String()
				if c.isHidden(path) {
					shown = masked
				}
				found = append(found, Warning{path, "is read as " + shown +
					", because SQL folds unquoted names to lower case; put the name in double quotes to keep its capitals"})
			}
		}
	}
	return found
}

// filtered warns of sources that were told to accept a row filter: rows that it
// leaves out are never published, and nothing else will say so.
func (c *Config) filtered() (found []Warning) {
	for _, s := range c.Sources {
		if s.Value.Postgres.AllowRowFilter {
			found = append(found, Warning{
				join("sources", s.Key, "postgres", "allow_row_filter"),
				"rows that a filter of the publication leaves out are never published",
			})
		}
	}
	return found
}
