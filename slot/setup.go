package slot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/event"
)

// Step is one thing that init makes.
type Step struct {
	// What names it, for instance "table public.outbox".
	What string
	// SQL are the statements, in order; empty when it is there and fits.
	SQL []string
	// Without says why it is left out for now, where the relay can do without it.
	Without string

	slot bool // the slot's own step: it cannot be made in the transaction of the others
}

// Done reports that nothing is left to do.
func (s Step) Done() bool { return len(s.SQL) == 0 }

// Steps are in the order in which they must be made.
type Steps []Step

// Done reports that nothing is left to do.
func (s Steps) Done() bool {
	for _, step := range s {
		if !step.Done() {
			return false
		}
	}
	return true
}

// Plan says what init would make. What exists and fits is left as it is; what
// exists and differs is an error that names the difference: walrelay alters
// nothing that somebody else may rely on.
func Plan(ctx context.Context, conn *pgx.Conn, o Options) (Steps, error) {
	steps, _, err := plan(ctx, conn, o)
	return steps, err
}

func plan(ctx context.Context, conn *pgx.Conn, o Options) (Steps, *inventory, error) {
	v, err := takeInventory(ctx, conn, o)
	if err != nil {
		return nil, nil, err
	}
	if err := v.unfit(o); err != nil {
		return nil, v, err
	}
	marker, err := readMarkerIfThere(ctx, conn, o, v)
	if err != nil {
		return nil, v, err
	}
	steps, err := v.steps(o, marker)
	return steps, v, err
}

// unfit says why nothing can be made on the server at all.
func (v *inventory) unfit(o Options) error {
	findings := v.hostFindings()
	if o.Capture == CaptureLog {
		findings = v.serverFindings()
	}
	return firstFailure(findings)
}

// steps is the plan for a server that is fit.
func (v *inventory) steps(o Options, marker *Marker) (Steps, error) {
	steps, tables, err := v.tableSteps(o)
	if err != nil {
		return nil, err
	}
	if !o.polls() {
		step, err := v.publicationStep(o, tables)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	if o.Role != "" {
		steps = append(steps, Step{What: "grants to role " + quoteIfNeeded(o.Role), SQL: grantDDL(o)})
	}
	if o.polls() {
		return steps, nil
	}
	step, err := v.slotStep(o, marker)
	return append(steps, step), err
}

// tableSteps are the outbox tables and walrelay's own, with the tables as they
// will be.
func (v *inventory) tableSteps(o Options) (Steps, []tableInfo, error) {
	var steps Steps
	tables := make([]tableInfo, len(v.tables))
	for i, t := range v.tables {
		step := Step{What: "table " + t.String()}
		if !t.exists && len(t.alike) == 0 {
			step.SQL = tableDDL(t.Table, o)
			t = plannedTable(t.Table, o)
		} else if e := t.judge(o); e != nil {
			return nil, nil, e
		}
		tables[i] = t
		steps = append(steps, step)
	}
	if o.keepsBooks() {
		for _, name := range bookNames {
			step := Step{What: "bookkeeping " + o.book(name).String()}
			if !v.books[name].exists {
				step.SQL = bookDDL(o, name)
			}
			steps = append(steps, step)
		}
	}
	return append(steps, v.wakeUpSteps(o)...), tables, nil
}

func (v *inventory) publicationStep(o Options, tables []tableInfo) (Step, error) {
	step := Step{What: "publication " + quoteIfNeeded(o.Publication)}
	if !v.publication.exists {
		// Where gaps are made up for from the table the relay sees this one, and does.
		if v.Slot.Exists && !o.makesUpForGaps() {
			return step, precondition(AnchorPublicationOld,
				fmt.Sprintf("slot %s is there, but publication %s is not: a publication that is made now is younger than the slot, and the rows in between cannot be read with it", o.Slot, quoteIfNeeded(o.Publication)),
				"where rows are marked, set on_gap: catch_up and run 'walrelay init' again: what is pending in the table is published first; otherwise run 'walrelay init --new-slot', after publishing by hand what the old slot still had to bring")
		}
		step.SQL = []string{publicationDDL(tables, o)}
	} else if e := v.publication.judge(v.publishedNow(tables), o); e != nil {
		return step, e
	}
	return step, nil
}

// publishedNow are the tables that the publication can be asked about: it cannot
// show one that is still to be made, though FOR ALL TABLES will hold it.
func (v *inventory) publishedNow(tables []tableInfo) []tableInfo {
	if !v.publication.everything {
		return tables
	}
	var now []tableInfo
	for i, t := range v.tables {
		if t.exists {
			now = append(now, tables[i])
		}
	}
	return now
}

func (v *inventory) slotStep(o Options, marker *Marker) (Step, error) {
	step := Step{What: "slot " + o.Slot, slot: true}
	if o.Capture == CaptureAuto && !v.Slot.Exists {
		// The table is polled until the log can be read; the relay makes the slot then.
		if err := firstFailure(append(v.serverFindings(), v.roleFindings()...)); err != nil {
			step.Without = err.Error()
			return step, nil
		}
	}
	if err := firstFailure(v.slotFindings(o)); err != nil {
		return step, err
	}
	if v.Slot.Exists {
		if e := invalidated(v.Slot, v.Slot.Confirmed); e != nil {
			return step, e
		}
		return step, nil
	}
	if marker != nil {
		// A new slot would begin now, and hide what the old one still had to bring.
		_, err := Judge(marker, v.Facts)
		return step, err
	}
	if err := firstFailure(v.capacityFindings()[:1]); err != nil {
		return step, err
	}
	step.SQL = []string{slotDDL(o, v.ServerVersion)}
	return step, nil
}

// plannedTable is the table that tableDDL makes, as far as the publication's
// column list needs it.
func plannedTable(t Table, o Options) tableInfo {
	info := tableInfo{Table: t, exists: true, kind: "r"}
	for _, column := range append(o.Schema.Columns[:], o.ExtraColumns...) {
		if _, have := info.column(column); column != "" && !have {
			info.columns = append(info.columns, columnInfo{name: column, kind: "b"})
		}
	}
	return info
}

// Apply makes what Plan says, in two parts: all objects in one transaction, then
// the slot with the marker. If the second part fails, the slot is dropped again:
// a slot that nobody reads fills the disk.
func Apply(ctx context.Context, conn *pgx.Conn, o Options) (Steps, error) {
	steps, v, err := plan(ctx, conn, o)
	if err != nil {
		return nil, err
	}
	if err := makeObjects(ctx, conn, o, steps); err != nil {
		return steps, err
	}
	switch last := steps[len(steps)-1]; {
	case !last.slot || last.Without != "":
		return steps, nil
	case last.Done():
		return steps, adoptSlot(ctx, conn, o)
	}
	_, err = makeSlot(ctx, conn, o, v.ServerVersion)
	return steps, err
}

// makeObjects runs all steps but the slot's in one transaction.
func makeObjects(ctx context.Context, conn *pgx.Conn, o Options, steps Steps) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, step := range steps {
			if step.slot {
				continue
			}
			for _, sql := range step.SQL {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return Classify(err, o.scene("making "+step.What))
				}
			}
		}
		return nil
	})
	return Classify(err, o.scene("making the objects"))
}

// adoptSlot remembers a slot that was there before, unless it is remembered already.
func adoptSlot(ctx context.Context, conn *pgx.Conn, o Options) error {
	marker, err := ReadMarker(ctx, conn, o)
	if err != nil || marker != nil {
		return err
	}
	f, err := readFacts(ctx, conn, o.Slot)
	if err != nil {
		return Classify(err, o.scene("reading slot "+o.Slot))
	}
	if _, err := remember(ctx, conn, o, f, f.Slot.Confirmed); err != nil {
		return Classify(err, o.scene("remembering slot "+o.Slot))
	}
	return nil
}

// ReplaceSlot makes a new slot in place of a lost, invalidated or unwanted one and
// remembers it as created. Everything before it that was not published is missing
// from its log: the caller owes a catch-up from the table.
func ReplaceSlot(ctx context.Context, conn *pgx.Conn, o Options) (Marker, error) {
	if o.polls() {
		return Marker{}, precondition(AnchorOptions, fmt.Sprintf("source %s is polled and has no slot", o.Source), "write capture: log or auto, if it is to have one")
	}
	f, err := readFacts(ctx, conn, o.Slot)
	if err != nil {
		return Marker{}, Classify(err, o.scene("reading slot "+o.Slot))
	}
	if f.Slot.Active {
		return Marker{}, activeError(o, f)
	}
	// The objects come first, the publication above all, as at a first start. While a
	// step fails the old slot and the marker stay, and with them the gap is seen.
	v, err := takeInventory(ctx, conn, o)
	if err != nil {
		return Marker{}, err
	}
	if err := firstFailure(v.serverFindings()); err != nil {
		return Marker{}, err
	}
	v.Slot = SlotFacts{Name: o.Slot}
	steps, err := v.steps(o, nil)
	if err != nil {
		return Marker{}, err
	}
	if err := makeObjects(ctx, conn, o, steps); err != nil {
		return Marker{}, err
	}
	if f.Slot.Exists {
		if err := dropSlot(ctx, conn, o); err != nil {
			return Marker{}, err
		}
	}
	return makeSlot(ctx, conn, o, f.ServerVersion)
}

// makeSlot makes the slot and writes the marker.
func makeSlot(ctx context.Context, conn *pgx.Conn, o Options, version int) (Marker, error) {
	doing := o.scene("making slot " + o.Slot)
	// The slot waits for transactions that are running now: no time limit but the caller's.
	for _, limit := range []string{"statement_timeout", "lock_timeout"} {
		if _, err := conn.Exec(ctx, "set "+limit+" = 0"); err != nil {
			return Marker{}, Classify(err, doing)
		}
		defer func() { _, _ = conn.Exec(ctx, "reset "+limit) }()
	}
	var text string
	if err := conn.QueryRow(ctx, slotDDL(o, version)).Scan(&text); err != nil {
		var pg *pgconn.PgError
		if !errors.As(err, &pg) {
			// No answer: the server may be about to finish it.
			err = errors.Join(err, undo(ctx, o, conn.PgConn().PID()))
		}
		return Marker{}, Classify(err, doing)
	}
	m, err := rememberNew(ctx, conn, o, text)
	if err != nil {
		return m, errors.Join(Classify(err, o.scene("remembering slot "+o.Slot)), undo(ctx, o, 0))
	}
	return m, nil
}

func rememberNew(ctx context.Context, conn *pgx.Conn, o Options, begins string) (Marker, error) {
	lsn, err := event.ParseLSN(begins)
	if err != nil {
		return Marker{}, err
	}
	f, err := readFacts(ctx, conn, o.Slot)
	if err != nil {
		return Marker{}, err
	}
	return remember(ctx, conn, o, f, lsn)
}

func remember(ctx context.Context, conn *pgx.Conn, o Options, f Facts, at event.LSN) (Marker, error) {
	print, err := fingerprint(ctx, conn, o)
	if err != nil {
		return Marker{}, err
	}
	m := Marker{SystemID: f.SystemID, Timeline: f.Timeline, Slot: o.Slot, Confirmed: at, Phase: event.PhaseCreated, Publication: print}
	return m, ReplaceMarker(ctx, conn, o, m)
}

func dropSlot(ctx context.Context, db DB, o Options) error {
	if _, err := db.Exec(ctx, `select pg_catalog.pg_drop_replication_slot($1)`, o.Slot); err != nil {
		return Classify(err, o.scene("dropping slot "+o.Slot))
	}
	return nil
}

// undo drops the slot that this call made, over a connection of its own: the one
// at hand may be what failed, and the caller's context over. maker is the backend
// that may still be at it; it is ours, and ended if so.
func undo(ctx context.Context, o Options, maker uint32) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	conn, err := Connect(ctx, o)
	if err != nil {
		return fmt.Errorf("slot %s may be left behind: %w", o.Slot, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `
		select pg_catalog.pg_terminate_backend(active_pid, 5000) from pg_catalog.pg_replication_slots
		 where slot_name = $1 and active_pid = $2`, o.Slot, maker)
	if err == nil {
		// Another init may have had more luck meanwhile: then the slot is in use or gone.
		_, err = conn.Exec(ctx, `
			select pg_catalog.pg_drop_replication_slot(slot_name) from pg_catalog.pg_replication_slots where slot_name = $1 and not active`, o.Slot)
	}
	if err != nil {
		return fmt.Errorf("slot %s may be left behind: %w", o.Slot, err)
	}
	return nil
}
