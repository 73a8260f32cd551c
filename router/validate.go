package router

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/walrelay/walrelay/event"
)

// Validate says everything that is wrong with the options, in one Halt error,
// or returns nil.
func (o *Options) Validate() error {
	var bad problems
	switch o.Schema.Preset {
	case event.Forze, event.Debezium, event.Basic:
	default:
		bad.add("schema %q is unknown: want %s, %s or %s", o.Schema.Preset, event.Forze, event.Debezium, event.Basic)
	}
	if o.Source == "" {
		bad.add("the source has no name")
	}
	envelopes := o.validateRoutes(&bad)
	o.validateHeaders(&bad, envelopes)
	if len(bad) == 0 {
		return nil
	}
	return &event.Error{
		Class: event.Halt, Fault: event.FaultUsage, Anchor: AnchorOptions,
		What:   strings.Join(bad, "; "),
		Remedy: "correct the routes and headers in the configuration file",
	}
}

// validateRoutes returns whether some route writes CloudEvents headers.
func (o *Options) validateRoutes(bad *problems) (cloudEvents bool) {
	seen := make(map[string]int, len(o.Routes))
	for i, rt := range o.Routes {
		at := fmt.Sprintf("route %q", rt.Match)
		if why := checkPattern(rt.Match); why != "" {
			bad.add("route %d: %s", i+1, why)
		} else if first, dup := seen[rt.Match]; dup {
			bad.add("%s stands twice in the table, at places %d and %d", at, first+1, i+1)
		} else {
			seen[rt.Match] = i
		}
		rt = rt.withDefaults(o.Schema.Preset)
		if t, why := parseTemplate(rt.Topic); why != "" {
			bad.add("%s: %s", at, why)
		} else if f, missing := t.missing(&o.Schema); missing {
			bad.add("%s: topic %q needs {%s}, but schema %s has no column for %s: map one under schema.columns",
				at, rt.Topic, variableName(f), o.Schema.Preset, f)
		}
		oneOf(bad, at, "key_fallback", rt.KeyFallback, FallbackEventID, FallbackNone)
		oneOf(bad, at, "null_payload", rt.NullPayload, NullPoison, NullTombstone)
		oneOf(bad, at, "envelope", rt.Envelope, EnvelopeNone, EnvelopeCloudEvents, EnvelopeJSON)
		oneOf(bad, at, "timestamp", rt.Timestamp, TimestampCommit, TimestampOccurredAt)
		oneOf(bad, at, "partition", rt.Partition, PartitionKey, PartitionSpread, PartitionNone)
		oneOf(bad, at, "encryption", rt.Encryption, EncryptionForward, EncryptionNone, EncryptionEndToEnd)
		if rt.Envelope == EnvelopeJSON && rt.Encryption == EncryptionEndToEnd {
			bad.add("%s: envelope json hides ciphertext from consumers, which look for it at the start of the value: "+
				"use envelope none or cloudevents with encryption end_to_end", at)
		}
		cloudEvents = cloudEvents || rt.Envelope == EnvelopeCloudEvents
	}
	return cloudEvents
}

func (o *Options) validateHeaders(bad *problems, cloudEvents bool) {
	seen := make(map[string]bool, len(o.Headers))
	for _, h := range o.Headers {
		switch {
		case h.Name == "":
			bad.add("the header made of column %q has no name", h.Column)
		case h.Column == "":
			bad.add("header %q has no column", h.Name)
		case !utf8.ValidString(h.Name):
			bad.add("header name %q is not UTF-8", h.Name)
		case seen[h.Name]:
			bad.add("header %q is configured twice", h.Name)
		case reserved(o.Schema.Preset, cloudEvents, h.Name),
			h.Name == headerTraceparent && o.Schema.Columns[event.Traceparent] != "":
			bad.add("header %q is written by walrelay itself: choose another name for column %q", h.Name, h.Column)
		}
		seen[h.Name] = true
	}
}

// problems collects sentences about wrong options.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func oneOf[T ~string](bad *problems, at, option string, got T, want ...T) {
	if slices.Contains(want, got) {
		return
	}
	names := make([]string, len(want))
	for i, w := range want {
		names[i] = string(w)
	}
	bad.add("%s: %s %q is unknown, did you mean %s? (want %s)",
		at, option, got, nearest(string(got), names), strings.Join(names, ", "))
}
