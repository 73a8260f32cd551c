package slot

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
)

// Marker is what walrelay remembers of a source, in the source's own database.
type Marker struct {
	SystemID  string
	Timeline  int32
	Slot      string
	Confirmed event.LSN
	Phase     event.Phase
	// Publication is the publication's fingerprint at that position; empty: not known.
	Publication string
}

// MarkerTable is the table that markers live in, one row per source.
func (o *Options) MarkerTable() Table { return o.book(bookSource) }

// ReadMarker reads the source's marker; nil where there is none or no place for one.
func ReadMarker(ctx context.Context, db DB, o Options) (*Marker, error) {
	if !o.writesMarker() {
		return nil, nil
	}
	var m Marker
	var confirmed string
	err := db.QueryRow(ctx, `select system_identifier, timeline, slot, confirmed_lsn::text, phase, publication from `+o.MarkerTable().SQL()+` where name = $1`, o.Marker).
		Scan(&m.SystemID, &m.Timeline, &m.Slot, &confirmed, &m.Phase, &m.Publication)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err == nil {
		m.Confirmed, err = event.ParseLSN(confirmed)
	}
	if err != nil {
		return nil, Classify(err, o.scene("reading the marker"))
	}
	return &m, nil
}

// WriteMarker remembers m. On one system, timeline and slot the position only
// moves forward: an older instance that is late cannot take it back. It does
// nothing where there is no place for a marker.
//
// The marker must be durable before the server is told the same position.
func WriteMarker(ctx context.Context, db DB, o Options, m Marker) error {
	return putMarker(ctx, db, o, m, ` where (s.system_identifier, s.timeline, s.slot) is distinct from (excluded.system_identifier, excluded.timeline, excluded.slot)
		or excluded.confirmed_lsn > s.confirmed_lsn
		or excluded.confirmed_lsn = s.confirmed_lsn and (excluded.phase, excluded.publication) is distinct from (s.phase, s.publication)`)
}

// ReplaceMarker remembers m whatever was remembered before: after a new slot was
// made, or when an operator says so.
func ReplaceMarker(ctx context.Context, db DB, o Options, m Marker) error {
	return putMarker(ctx, db, o, m, "")
}

// MarkPolled remembers that rows are published from the table from now on, past the
// marker's position. Without a marker there is nothing to say.
func MarkPolled(ctx context.Context, db DB, o Options) error {
	if !o.keepsBooks() {
		return nil
	}
	_, err := db.Exec(ctx, `update `+o.MarkerTable().SQL()+` set phase = $2, updated_at = pg_catalog.clock_timestamp() where name = $1 and phase <> $2`,
		o.Marker, event.PhasePolled)
	return Classify(err, o.scene("writing the marker"))
}

func putMarker(ctx context.Context, db DB, o Options, m Marker, where string) error {
	if !o.writesMarker() {
		return nil
	}
	_, err := db.Exec(ctx, fmt.Sprintf(`
		insert into %s as s (name, system_identifier, timeline, slot, confirmed_lsn, phase, publication, updated_at)
		values ($1::text, $2::text, $3::int, $4::text, $5::text::pg_catalog.pg_lsn, $6::text, $7::text, pg_catalog.clock_timestamp())
		on conflict (name) do update set system_identifier = excluded.system_identifier, timeline = excluded.timeline,
			slot = excluded.slot, confirmed_lsn = excluded.confirmed_lsn, phase = excluded.phase,
			publication = excluded.publication, updated_at = excluded.updated_at%s`,
		o.MarkerTable().SQL(), where),
		o.Marker, m.SystemID, m.Timeline, m.Slot, m.Confirmed.String(), m.Phase, m.Publication)
	if err != nil {
		return Classify(err, o.scene("writing the marker"))
	}
	return nil
}

func (o *Options) scene(doing string) Scene {
	return Scene{Doing: doing, Slot: o.Slot, Publication: o.Publication}
}
