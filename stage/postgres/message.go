package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/stage"
)

// emitSQL takes $1 prefixes and $2 contents. The order of the rows is that of the
// messages in the log: they are sorted first and written in a select above.
const emitSQL = emitCTE + emitEnd

const (
	emitCTE = `with written as (
 select pg_catalog.pg_logical_emit_message(true, m.prefix, m.content)::text as lsn
 from (select u.prefix, u.content from unnest($1::text[], $2::bytea[]) with ordinality as u (prefix, content, n) order by u.n) m)`
	emitEnd = `
select lsn from written`
)

// emitStatement takes the node key and mark of the checkpoint besides.
func (o *Options) emitStatement() string { return emitCTE + o.checkpointClause(3) + emitEnd }

// emitEvents writes each event as a JSON object whose members are named as the
// columns. The payload comes last and byte for byte: a reader of the log gets it as
// it was staged.
func (x *Outbox) emitEvents(ctx context.Context, db DB, events []stage.Staged) error {
	var prefixes, contents array
	for i := range events {
		content, err := json.Marshal(x.o.object(&events[i]))
		if err != nil {
			return err
		}
		content = append(append(append(content[:len(content)-1], `,"payload":`...), events[i].Body...), '}')
		prefixes.add(x.o.Prefix)
		contents.add(fmt.Sprintf(`\x%x`, content))
	}
	return db.rows(ctx, x.emit, x.withMark([]any{prefixes.String(), contents.String()}, events), ignore)
}

func ignore(scan func(...any) error) error {
	var lsn string
	return scan(&lsn)
}

// object is the content of a message with prefix outbox, save its payload; what is
// absent is left out.
type object struct {
	EventID          string `json:"event_id"`
	Route            string `json:"outbox_route"`
	Key              string `json:"ordering_key,omitempty"`
	Type             string `json:"event_type"`
	Tenant           string `json:"tenant_id,omitempty"`
	Execution        string `json:"execution_id,omitempty"`
	Correlation      string `json:"correlation_id,omitempty"`
	Causation        string `json:"causation_id,omitempty"`
	OccurredAt       string `json:"occurred_at"`
	HLC              uint64 `json:"hlc,omitempty"`
	Traceparent      string `json:"traceparent,omitempty"`
	AggregateVersion int64  `json:"aggregate_version,omitempty"`
}

func (o *Options) object(s *stage.Staged) object {
	id := func(u uuid.UUID) string {
		if u == uuid.Nil {
			return ""
		}
		return u.String()
	}
	m := object{
		EventID: s.ID.String(), Route: s.Route, Key: s.Key, Type: s.Type, Tenant: id(s.Tenant), Execution: id(s.Execution),
		Correlation: id(s.Correlation), Causation: id(s.Causation), OccurredAt: moment(s.OccurredAt),
	}
	if !o.OmitHLC {
		m.HLC = uint64(s.Stamp)
	}
	if !o.OmitTraceparent {
		m.Traceparent = s.Traceparent
	}
	if o.AggregateVersion {
		m.AggregateVersion = s.AggregateVersion
	}
	return m
}

// Emit writes messages into the log as they stand, in one statement, in their order
// (prefix outbox/<route>/<key>, content any bytes). They carry no stamp and no
// event id, and need no table. The same rules hold for db as for [Outbox.Flush].
func (x *Outbox) Emit(ctx context.Context, db DB, messages ...stage.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if len(messages) > x.o.MaxEvents {
		return fmt.Errorf("emitting %d messages, %d allowed, nothing is written: %w", len(messages), x.o.MaxEvents, stage.ErrTooMany)
	}
	if !x.o.Autocommit {
		if err := db.transaction(); err != nil {
			return fmt.Errorf("emitting messages: %w", err)
		}
	}
	var prefixes, contents array
	for i := range messages {
		m := &messages[i]
		if err := m.Check(); err != nil {
			return err
		}
		prefix := x.o.Prefix + "/" + m.Route
		if m.Key != "" {
			prefix += "/" + m.Key
		}
		prefixes.add(prefix)
		contents.add(fmt.Sprintf(`\x%x`, m.Content))
	}
	if err := db.rows(ctx, emitSQL, []any{prefixes.String(), contents.String()}, ignore); err != nil {
		return fmt.Errorf("emitting messages: %w", err)
	}
	return nil
}
