package config

import (
	"errors"
	"strings"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/router"
)

// routes lets the router judge its options, one route at a time so that each
// sentence gets its line.
func (k *checking) routes() {
	for i := range k.c.Sources {
		s := &k.c.Sources[i]
		path := join("sources", s.Key)
		schema, err := s.Value.Schema.event()
		if err != nil || k.spoiled(join(path, "schema")) {
			continue
		}
		for j := range k.c.Routes {
			r := &k.c.Routes[j]
			if at := join("routes", r.Key); !k.touched(at) {
				o := router.Options{Source: s.Key, Schema: schema, Routes: []router.Route{routerRoute(r.Key, &r.Value)}}
				k.judge(at, false, o.Validate())
			}
		}
		for _, h := range s.Value.Headers {
			at := join(path, "headers", h.Key)
			o := router.Options{Source: s.Key, Schema: schema, Headers: []router.Header{{Name: h.Key, Column: h.Value}}}
			k.judge(at, false, o.Validate())
		}
	}
}

// pins refuses numbers of partitions that cannot be laid on one topic.
func (k *checking) pins() {
	first := map[string]*Entry[Route]{}
	for i := range k.c.Routes {
		r := &k.c.Routes[i]
		at := join("routes", r.Key, "pin_partitions")
		switch topic, n := r.Value.Topic, r.Value.PinPartitions; {
		case n == 0:
		case topic == "" || strings.Contains(topic, "{"):
			k.refuse(at, "needs a topic without variables: a number of partitions belongs to one topic")
		case first[topic] != nil && first[topic].Value.PinPartitions != n:
			k.refuse(at, "differs from the number of route %s, which has the same topic", quoteForPeople(first[topic].Key))
		default:
			first[topic] = r
		}
	}
}

// judge reports what a room says of its options, unless that could quote what must not print.
func (k *checking) judge(path string, remedy bool, err error) {
	if err == nil {
		return
	}
	what := err.Error()
	if e := (*event.Error)(nil); errors.As(err, &e) {
		what = e.What
		if remedy {
			what += ": " + e.Remedy
		}
	}
	if k.touchesHidden(path) {
		what = "is refused; the reason is withheld because it may quote a value that comes from a file"
	}
	k.refuse(path, "%s", what)
}

// touched reports whether the path or an option below it is refused already.
func (k *checking) touched(path string) bool {
	for known := range k.refused {
		if strings.HasPrefix(known, path+".") {
			return true
		}
	}
	return k.spoiled(path)
}

func (k *checking) touchesHidden(path string) bool {
	for known := range k.c.hidden {
		if known == path || strings.HasPrefix(known, path+".") {
			return true
		}
	}
	return false
}
