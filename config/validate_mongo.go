package config

// mongo judges what only a replica set has.
func (k *checking) mongo(path string, s *Source) {
	m := &s.Mongo
	at := func(key string) string { return join(path, key) }
	if !m.URL.IsZero() {
		if err := m.URL.Check(); err != nil {
			k.refuse(at("url"), "the connection string %v", err)
		}
	}
	if !s.keepsBooks() {
		k.refuse(at("bookkeeping"), "none is not possible: a change stream has no slot, and its position needs a place in the database")
	}
	if m.Lease > 0 && m.Lease < shortestLease {
		k.refuse(at("lease"), "is too short: want %s or more, so that a slow answer loses nothing", shortestLease)
	}
	if m.MaxEventBytes > m.InFlightBytes {
		k.refuse(at("max_event_bytes"), "is more than in_flight_bytes: one event could never be read")
	}
	if s.Poll.Notify {
		k.refuse(join(parent(path), "poll", "notify"), "is for Postgres: a polled collection is looked at every poll.interval")
	}
}
