package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/slot"
)

// emission is the test event that emit writes.
type emission struct {
	source, route, key, typ, payload string
	message                          bool
}

func (a *app) emitCommand() *cobra.Command {
	var e emission
	cmd := &cobra.Command{
		Use: "emit --route ROUTE", Short: "write one test event into the outbox, as an application would", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if e.route == "" {
				return usageError("emit: say where the event goes: --route ROUTE")
			}
			if !json.Valid([]byte(e.payload)) {
				return usageError("emit: the payload is no JSON value")
			}
			return a.emit(cmd.Context(), e)
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.source, "source", "", "name of the source; may be left out when there is one")
	f.StringVar(&e.route, "route", "", "route of the event")
	f.StringVar(&e.key, "key", "", "ordering key")
	f.StringVar(&e.typ, "type", "walrelay.test", "event type")
	f.StringVar(&e.payload, "payload", `{"test": true}`, "payload, a JSON value")
	f.BoolVar(&e.message, "message", false, "emit a logical message instead of inserting a row")
	return cmd
}

// pickSource is the named source, or the only one.
func pickSource(c *config.Config, name string) (string, error) {
	var names []string
	for _, s := range c.Sources {
		names = append(names, s.Key)
		if s.Key == name {
			return name, nil
		}
	}
	if name == "" && len(names) == 1 {
		return names[0], nil
	}
	return "", usageError("say which source with --source: %s", strings.Join(names, ", "))
}

func (a *app) emit(ctx context.Context, e emission) error {
	c, _, err := a.load()
	if err != nil {
		return err
	}
	name, err := pickSource(c, e.source)
	if err != nil {
		return err
	}
	if c.IsMongo(name) {
		return a.emitDocument(ctx, c, name, e)
	}
	opt, err := c.SlotOptions(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	conn, err := slot.Connect(ctx, opt)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	where := ""
	if e.message || len(opt.Tables) == 0 {
		where, err = emitMessage(ctx, conn, opt, id, e)
	} else {
		where, err = emitRow(ctx, conn, opt, id, e)
	}
	if err != nil {
		return slot.Classify(err, slot.Scene{Doing: "writing the test event"})
	}
	_, err = fmt.Fprintf(a.out, "event %s written to %s\n", id, where)
	return err
}

func emitMessage(ctx context.Context, conn *pgx.Conn, opt slot.Options, id uuid.UUID, e emission) (string, error) {
	if len(opt.Messages) == 0 {
		return "", usageError("source %s reads no logical messages: set messages in its configuration", opt.Source)
	}
	col := opt.Schema.Columns
	members := map[string]any{
		col[event.EventID]: id.String(), col[event.Route]: e.route, col[event.Type]: e.typ, col[event.Payload]: json.RawMessage(e.payload),
	}
	if e.key != "" {
		members[col[event.Key]] = e.key
	}
	content, err := json.Marshal(members)
	if err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, `select pg_catalog.pg_logical_emit_message(true, $1::text, $2::text)`, opt.Messages[0], string(content))
	return "the log, prefix " + opt.Messages[0], err
}

func emitRow(ctx context.Context, conn *pgx.Conn, opt slot.Options, id uuid.UUID, e emission) (string, error) {
	col := opt.Schema.Columns
	type value struct {
		column, cast string
		value        any
	}
	values := []value{
		{col[event.RowID], "uuid", id.String()},
		{col[event.Route], "text", e.route},
		{col[event.Type], "text", e.typ},
		{col[event.Payload], "jsonb", e.payload},
	}
	if col[event.EventID] != col[event.RowID] {
		values = append(values, value{col[event.EventID], "uuid", id.String()})
	}
	if e.key != "" || opt.Schema.Required[event.Key] {
		key := e.key
		if key == "" {
			key = id.String()
		}
		values = append(values, value{col[event.Key], "text", key})
	}
	if opt.Schema.Preset == event.Forze {
		now := time.Now()
		values = append(values, value{col[event.Status], "text", "pending"}, value{col[event.OccurredAt], "timestamptz", now}, value{"created_at", "timestamptz", now})
	}
	var names, marks []string
	var args []any
	for i, v := range values {
		names = append(names, pgx.Identifier{v.column}.Sanitize())
		marks = append(marks, fmt.Sprintf("$%d::%s", i+1, v.cast))
		args = append(args, v.value)
	}
	table := opt.Tables[0]
	_, err := conn.Exec(ctx, fmt.Sprintf("insert into %s (%s) values (%s)", table.SQL(), strings.Join(names, ", "), strings.Join(marks, ", ")), args...)
	return "table " + table.String(), err
}
