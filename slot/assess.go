package slot

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Assess answers what a stream that is opened now would find: the marker (nil: none)
// and whether somebody else is reading, or the error that it would end with. It
// changes nothing.
func Assess(ctx context.Context, conn *pgx.Conn, o Options) (marker *Marker, active bool, err error) {
	facts, err := VerifyForStream(ctx, conn, o)
	if err != nil {
		return nil, false, err
	}
	if marker, err = ReadMarker(ctx, conn, o); err != nil {
		return nil, facts.Slot.Active, err
	}
	if _, err = Judge(marker, facts); err != nil || marker == nil || marker.Publication == "" {
		return marker, facts.Slot.Active, err
	}
	print, err := fingerprint(ctx, conn, o)
	if err != nil {
		return marker, facts.Slot.Active, Classify(err, o.scene("reading the publication"))
	}
	if print != marker.Publication {
		return marker, facts.Slot.Active, changedPublication(o, marker.Confirmed)
	}
	return marker, facts.Slot.Active, nil
}

// ProbeReplication tries what only a replication connection can tell: the right
// to replicate, a free walsender, a pooler in between. nil: it would be let in.
func ProbeReplication(ctx context.Context, o Options) error {
	conn, err := ConnectReplication(ctx, o)
	if err != nil {
		return fmt.Errorf("source %s: %w", o.Source, err)
	}
	return conn.Close(context.WithoutCancel(ctx))
}
