package config

import (
	"fmt"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/router"
)

// RouterOptions are the options of package router for one source. The error is
// nil for every source of a loaded configuration.
func (c *Config) RouterOptions(source string) (router.Options, error) {
	s, schema, err := c.source(source)
	if err != nil {
		return router.Options{}, err
	}
	o := router.Options{Source: source, Schema: schema, Position: s.PositionHeader}
	for _, h := range s.Headers {
		o.Headers = append(o.Headers, router.Header{Name: h.Key, Column: h.Value})
	}
	for _, r := range c.Routes {
		o.Routes = append(o.Routes, routerRoute(r.Key, &r.Value))
	}
	return o, nil
}

func routerRoute(match string, r *Route) router.Route {
	return router.Route{
		Match: match, Topic: r.Topic,
		KeyFallback: router.KeyFallback(r.KeyFallback),
		NullPayload: router.NullPayload(r.NullPayload),
		Envelope:    router.Envelope(r.Envelope),
		Timestamp:   router.Timestamp(r.Timestamp),
		Partition:   router.Partition(r.Partition),
		Encryption:  router.Encryption(r.Encryption),
		Loose:       !r.HoldBack,
		Order:       r.order(),
	}
}

// source finds a source and what its columns mean.
func (c *Config) source(name string) (*Source, event.Schema, error) {
	for i := range c.Sources {
		if c.Sources[i].Key == name {
			schema, err := c.Sources[i].Value.Schema.event()
			return &c.Sources[i].Value, schema, err
		}
	}
	return nil, event.Schema{}, refusal(Problems{{Path: join("sources", name), What: "there is no such source"}})
}

// event is the schema as the rooms know it.
func (s *Schema) event() (event.Schema, error) {
	rename := make(map[event.Field]string, len(s.Columns))
	for _, col := range s.Columns {
		f, ok := event.FieldByName(col.Key)
		if !ok {
			return event.Schema{}, fmt.Errorf("%q is no field", col.Key)
		}
		rename[f] = col.Value
	}
	return event.NewSchema(event.Preset(s.Preset), rename)
}
