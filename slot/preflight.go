package slot

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/event"
)

// minVersion is the first server that can tell the column list and the row
// filter of a publication.
const minVersion = 150000

// Check looks at every precondition of a source and reports each, the good ones
// too. It changes nothing and needs no slot to be free. What depends on a
// connection that cannot be had is left out.
func Check(ctx context.Context, o Options) []event.Finding {
	cfg, err := o.ConnConfig()
	if err != nil {
		return []event.Finding{event.Explained("options", "cannot be used", "usable", asError(err))}
	}
	var findings []event.Finding
	conn, err := Connect(ctx, o)
	if err != nil {
		return append(findings, event.Explained("server", "no connection", "an ordinary connection", asError(err)))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	v, err := takeInventory(ctx, conn, o)
	if err != nil {
		return append(findings, event.Explained("server", "no answer", "answers about its settings", asError(err)))
	}
	marker, markerErr := readMarkerIfThere(ctx, conn, o, v)

	address := conn.PgConn().Conn().RemoteAddr().String()
	findings = append(findings, event.Fine("server", fmt.Sprintf("PostgreSQL %s at %s, database %s", v.settings["server_version"], address, v.role.database), "reachable"))
	if host, why := unverified(&cfg.Config); host != "" {
		findings = append(findings, event.Warned("sslmode", host+" "+why, "verify-full", "write sslmode=verify-full, with sslrootcert where the certificate is not publicly signed"))
	}
	findings = append(findings, v.hostFindings()...)
	if v.unusable || v.InRecovery {
		return findings
	}
	if !o.polls() {
		findings = append(findings, v.logFindings(ctx, o)...)
	}
	findings = append(findings, v.tableFindings(o)...)
	findings = append(findings, v.writeFindings(o)...)
	findings = append(findings, v.bookkeepingFindings(o)...)
	if o.polls() {
		return findings
	}
	if markerErr != nil {
		findings = append(findings, event.Explained("marker", "cannot be read", "readable", asError(markerErr)))
	} else {
		findings = append(findings, o.bearable(append(v.slotFindings(o), v.positionFinding(marker)...))...)
	}
	if o.Ordered {
		findings = append(findings, visibilityFinding(ctx, conn, o, v.role.name))
	}
	return append(findings, v.adviceFindings(o)...)
}

// logFindings is what reading the log needs besides the slot.
func (v *inventory) logFindings(ctx context.Context, o Options) []event.Finding {
	findings := v.serverFindings()[len(v.hostFindings()):]
	findings = append(findings, v.capacityFindings()...)
	findings = append(findings, v.roleFindings()...)
	if v.role.replicates {
		findings = append(findings, replicationFinding(ctx, o, v))
	}
	return o.bearable(append(findings, v.publicationFinding(o)))
}

// bearable makes warnings of what the relay can do without: where the table is
// polled as long as the log cannot be read, or makes up for a gap.
func (o *Options) bearable(findings []event.Finding) []event.Finding {
	for i, f := range findings {
		switch {
		case f.Err == nil:
		case o.Capture == CaptureAuto:
			findings[i] = event.Warned(f.Setting, f.Is, f.Needs, "the table is polled until then; "+f.Remedy)
		case o.OnGap == GapCatchUp && f.Err.Fault == event.FaultGap:
			findings[i] = event.Warned(f.Setting, f.Is, f.Needs, "the relay makes a new slot and publishes what the table still holds, since on_gap is catch_up")
		}
	}
	return findings
}

func asError(err error) *event.Error {
	var e *event.Error
	if errors.As(err, &e) {
		return e
	}
	return &event.Error{Class: event.ClassOf(err), What: err.Error(), Anchor: AnchorServer, Remedy: "read the error"}
}

func readMarkerIfThere(ctx context.Context, conn *pgx.Conn, o Options, v *inventory) (*Marker, error) {
	if !v.books[bookSource].exists {
		return nil, nil
	}
	return ReadMarker(ctx, conn, o)
}

// replicationFinding tries what only a replication connection can tell:
// pg_hba.conf, a free walsender, a pooler in between. The walsender limit is
// judged with the settings: a server at its limit refuses this connection for it.
func replicationFinding(ctx context.Context, o Options, v *inventory) event.Finding {
	const setting, needs = "replication connection", "accepted"
	conn, err := ConnectReplication(ctx, o)
	if err != nil {
		e := asError(err)
		if e.Anchor == AnchorNoFreeSender && v.Slot.Active {
			return event.Warned(setting, e.What, needs, e.Remedy)
		}
		return event.Explained(setting, "refused", needs, e)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return event.Fine(setting, "accepted", needs)
}

// VerifyForStream looks at what must hold each time before the log is read, and
// returns the facts for [Judge], with the first precondition that fails. Whether
// the slot exists and is usable is Judge's to say, since that depends on what is
// remembered.
func VerifyForStream(ctx context.Context, conn *pgx.Conn, o Options) (Facts, error) {
	v, err := takeInventory(ctx, conn, o)
	if err != nil {
		return Facts{}, err
	}
	findings := v.serverFindings()
	if !v.unusable && !v.InRecovery {
		findings = append(findings, v.roleFindings()...)
		findings = append(findings, v.bookkeepingFindings(o)...)
		findings = append(findings, v.writeFindings(o)...)
		for i := range v.tables {
			t := &v.tables[i]
			if e := t.unfit(o); e != nil {
				findings = append(findings, event.Failing("table "+t.String(), "unfit", "a table that can be read", e))
			}
			if e := t.lacking(o); e != nil && v.Facts.Lacking == nil {
				v.Facts.Lacking = e
			}
		}
		findings = append(findings, v.publicationFinding(o))
		if v.Slot.Exists {
			findings = append(findings, v.slotFindings(o)...)
		}
	}
	return v.Facts, firstFailure(findings)
}

// VerifyForTable looks at what must hold before rows are claimed, and returns the
// first precondition that fails.
func VerifyForTable(ctx context.Context, conn *pgx.Conn, o Options) error {
	o.Capture = CapturePoll
	v, err := takeInventory(ctx, conn, o)
	if err != nil {
		return err
	}
	findings := v.hostFindings()
	if !v.unusable && !v.InRecovery {
		findings = append(findings, v.tableFindings(o)...)
		findings = append(findings, v.writeFindings(o)...)
		findings = append(findings, v.bookkeepingFindings(o)...)
	}
	return firstFailure(findings)
}
