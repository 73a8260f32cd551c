package router

import "github.com/walrelay/walrelay/event"

// Router makes records of one source's events. It belongs to one goroutine: it
// remembers topic names between calls.
type Router struct {
	source   string
	preset   event.Preset
	headers  []Header
	position bool

	table    table
	orphan   plan // for what matches nothing: key and headers of the dead letter
	topics   topics
	topicBuf []byte
	ceSource []byte
}

// New makes a router, or says everything that is wrong with the options (Halt).
func New(o Options) (*Router, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	routes := o.Routes
	if len(routes) == 0 {
		routes = []Route{{Match: "*"}}
	}
	r := &Router{
		source:   o.Source,
		preset:   o.Schema.Preset,
		headers:  o.Headers,
		position: o.Position,
		orphan:   newPlan(Route{}, o.Schema.Preset),
		topics:   make(topics),
		ceSource: cloudEventsSource(o.Source),
	}
	plans := make([]plan, len(routes))
	for i, rt := range routes {
		plans[i] = newPlan(rt, r.preset)
	}
	r.table = newTable(plans)
	return r, nil
}

// Topics lists the topics that do not depend on events, in no order; open says
// that there may be others.
func (r *Router) Topics() (names []string, open bool) {
	see := func(p *plan) {
		if p.topic.fixed == "" {
			open = true
		} else {
			names = append(names, p.topic.fixed)
		}
	}
	for _, p := range r.table.exact {
		see(p)
	}
	for _, p := range r.table.prefix {
		see(p)
	}
	if r.table.rest != nil {
		see(r.table.rest)
	}
	return names, open
}

// Route fills rec with the record for ev and returns scratch with the bytes
// that had to be made for it appended. rec's Headers keep their capacity.
//
// rec's slices alias ev's memory and scratch. Where appending moves scratch to a
// larger array, slices made earlier go on pointing into the old one, which the
// collector keeps for them; so the caller may append to scratch as often as it
// likes, but must not cut it shorter and write again before all results are in.
//
// An error is an [event.Error]: Poison when this event can never be published,
// Halt when its payload is not encrypted as the route declares. rec is filled
// all the same, as far as it goes (Topic is empty when none is known), because
// the publisher may have to make a dead letter of it.
func (r *Router) Route(ev *event.Event, rec *event.Record, scratch []byte) ([]byte, error) {
	commit := max(0, ev.CommitMicros/1000)
	*rec = event.Record{
		Headers: rec.Headers[:0],
		Millis:  commit, FallbackMillis: commit,
		Origin: event.Origin{
			Source: r.source, Relation: ev.Relation, EventID: ev.Fields[event.EventID],
			Row: ev.Fields[event.RowID], Route: ev.Fields[event.Route], Xid: ev.Xid,
			Commit: ev.Commit, Ordinal: ev.Ordinal,
		},
	}
	p, fault := r.plan(ev)
	if p != &r.orphan {
		rec.Topic, fault = r.topic(p, ev)
	}
	if len(ev.Fields[event.EventID]) == 0 {
		fault = graver(fault, poison(AnchorField, "the event has no id: its %s is NULL or empty", event.EventID))
	}
	setKey(rec, p, ev)
	rec.Loose, rec.Order = p.Loose, p.Order

	var when times
	when, scratch = r.times(p, ev, scratch)
	if p.Timestamp == TimestampOccurredAt && when.ok {
		if millis, ok := when.at.millis(); ok {
			rec.Millis = millis
		}
	}
	var next *event.Error
	scratch, next = r.setHeaders(rec, p, ev, &when, scratch)
	fault = graver(fault, next)
	scratch, next = setValue(rec, p, ev, &when, scratch)
	fault = graver(fault, next)
	if fault != nil {
		return scratch, fault
	}
	return scratch, nil
}

// Loose reports whether the events of a route are not held back behind a failing
// one of their key. It may be called by any goroutine.
func (r *Router) Loose(route string) bool {
	p := r.table.find([]byte(route))
	return p != nil && p.Loose
}

// plan never returns nil: with an error it is r.orphan.
func (r *Router) plan(ev *event.Event) (*plan, *event.Error) {
	route := ev.Fields[event.Route]
	if len(route) == 0 {
		what := "NULL"
		if route != nil {
			what = "empty"
		}
		return &r.orphan, poison(AnchorRoute, "the event's route is %s, so there is no topic for it", what)
	}
	p := r.table.find(route)
	if p == nil {
		return &r.orphan, poison(AnchorRoute, "route %s matches none of the %d routes in the table, and there is no \"*\"",
			brief(route), r.table.size)
	}
	return p, nil
}

func (r *Router) topic(p *plan, ev *event.Event) (string, *event.Error) {
	if p.topic.fixed != "" {
		return p.topic.fixed, nil
	}
	name, fault := p.topic.expand(r.topicBuf[:0], ev)
	r.topicBuf = name
	if fault != nil {
		return "", fault
	}
	return r.topics.name(name)
}

// setKey chooses key, hash and whether the record is spread. A blank is a key
// like any other; only NULL and empty are none.
func setKey(rec *event.Record, p *plan, ev *event.Event) {
	key := ev.Fields[event.Key]
	if len(key) == 0 && p.KeyFallback == FallbackEventID {
		key = ev.Fields[event.EventID]
	}
	if len(key) == 0 {
		rec.Spread = true
		return
	}
	rec.Key = key
	rec.Hash = hash(key)
	rec.Spread = p.Partition != PartitionKey
}
