package router

import (
	"net/url"
	"unicode/utf8"

	"github.com/walrelay/walrelay/event"
)

// Nobody may write to it.
var ceSpecVersion = []byte("1.0")

// addCloudEvents adds the attributes of CloudEvents 1.0 (Kafka binding, binary
// mode). ce_time must be RFC 3339, so an occurred_at that has no such form is
// left out; the record's own time is there in any case.
func (r *Router) addCloudEvents(h []event.Header, ev *event.Event, when *times) ([]event.Header, *event.Error) {
	f := &ev.Fields
	h = append(h, event.Header{Key: headerCESpecVersion, Value: ceSpecVersion})
	h = add(h, headerCEID, f[event.EventID])
	h = add(h, headerCEType, f[event.Type])
	h = append(h, event.Header{Key: headerCESource, Value: r.ceSource})
	if when.iso {
		h = add(h, headerCETime, when.txt)
	}
	switch {
	case len(f[event.Type]) == 0:
		return h, poison(AnchorField, "the event's %s is NULL or empty, but its route has envelope cloudevents, "+
			"which requires one", event.Type)
	case !utf8.Valid(f[event.EventID]):
		return h, poison(AnchorField, "the event's %s %s is not UTF-8, which CloudEvents requires",
			event.EventID, brief(f[event.EventID]))
	case !utf8.Valid(f[event.Type]):
		return h, poison(AnchorField, "the event's %s %s is not UTF-8, which CloudEvents requires",
			event.Type, brief(f[event.Type]))
	}
	return h, nil
}

// cloudEventsSource makes a URI reference of the source's name.
func cloudEventsSource(source string) []byte {
	return []byte("/walrelay/" + url.PathEscape(source))
}
