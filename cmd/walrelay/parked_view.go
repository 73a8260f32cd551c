package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/walrelay/walrelay/outbox"
)

// parkedView is a parked event as the commands show it. The payload is shown only
// when it is asked for.
type parkedView struct {
	Source   string    `json:"source"`
	ID       int64     `json:"id"`
	State    string    `json:"state"`
	Kept     string    `json:"kept"` // row, or whole
	Relation string    `json:"relation,omitempty"`
	Row      string    `json:"row_id,omitempty"`
	EventID  string    `json:"event_id"`
	Route    string    `json:"route"`
	Key      string    `json:"key,omitempty"` // empty: it holds nothing back
	Topic    string    `json:"topic"`
	Position string    `json:"position,omitempty"`
	Reason   string    `json:"reason"`
	Error    string    `json:"error"`
	Partial  bool      `json:"partial,omitempty"`
	ParkedAt time.Time `json:"parked_at"`

	Timestamp *time.Time   `json:"timestamp,omitempty"`
	Headers   []headerView `json:"headers,omitempty"`
	Bytes     *int         `json:"payload_bytes,omitempty"` // absent: a tombstone, or in its row
	Payload   *string      `json:"payload,omitempty"`
	Payload64 []byte       `json:"payload_base64,omitempty"` // where it is no text

	hint string
}

type headerView struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Value64 []byte `json:"value_base64,omitempty"`
}

func viewOf(source string, p *outbox.Parked) parkedView {
	v := parkedView{
		Source: source, ID: p.ID, State: string(p.State), Kept: "row", Relation: p.Relation, Row: p.Row, EventID: p.EventID, Route: p.Route, Key: p.Key,
		Topic: p.Topic, Reason: p.Reason, Error: p.Error, Partial: p.Partial, ParkedAt: p.ParkedAt,
	}
	if p.Whole {
		v.Kept = "whole"
	}
	if !p.Commit.IsZero() {
		v.Position = fmt.Sprintf("%s/%d", p.Commit, p.Ordinal)
	}
	return v
}

// detail adds the record.
func (v *parkedView) detail(p *outbox.Parked, payload bool) {
	rec := p.Record
	if rec == nil {
		if payload {
			v.hint = fmt.Sprintf("the payload is in its row: %s, id %s", p.Relation, p.Row)
		}
		return
	}
	at := time.UnixMilli(rec.Millis).UTC()
	v.Timestamp = &at
	for _, h := range rec.Headers {
		view := headerView{Key: h.Key}
		if utf8.Valid(h.Value) {
			view.Value = string(h.Value)
		} else {
			view.Value64 = h.Value
		}
		v.Headers = append(v.Headers, view)
	}
	if rec.Value == nil {
		return
	}
	v.Bytes = new(len(rec.Value))
	switch {
	case !payload:
	case utf8.Valid(rec.Value):
		v.Payload = new(string(rec.Value))
	default:
		v.Payload64 = rec.Value
	}
}

func (v *parkedView) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 2, 8, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("id", "%d (source %s)", v.ID, v.Source)
	line("state", "%s, since %s", v.State, v.ParkedAt.UTC().Format(time.RFC3339))
	line("reason", "%s: %s", v.Reason, v.Error)
	line("event", "%s", tidy(v.EventID))
	line("key", "%s", tidy(v.Key))
	line("route", "%s, to topic %s", tidy(v.Route), tidy(v.Topic))
	if v.Row != "" {
		line("row", "%s of %s", v.Row, v.Relation)
	}
	if v.Position != "" {
		line("position", "%s", v.Position)
	}
	if v.Kept == "whole" {
		line("kept", "whole, timestamp %s", v.Timestamp.Format(time.RFC3339Nano))
	} else {
		line("kept", "as its row")
	}
	if v.Partial {
		line("partial", "it was refused before its record was complete: it can only be dropped")
	}
	for _, h := range v.Headers {
		if h.Value64 != nil {
			line("header", "%s: %d bytes", tidy(h.Key), len(h.Value64))
			continue
		}
		line("header", "%s: %s", tidy(h.Key), tidy(h.Value))
	}
	if v.Bytes != nil {
		line("payload", "%d bytes", *v.Bytes)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case v.Payload != nil:
		fmt.Fprintln(out, *v.Payload)
	case v.Payload64 != nil:
		_, err := out.Write(append(v.Payload64, '\n'))
		return err
	case v.hint != "":
		fmt.Fprintln(out, v.hint)
	}
	return nil
}

// printJSON writes a value for machines.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
