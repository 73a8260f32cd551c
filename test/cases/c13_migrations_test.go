package cases

// C13 Column added, dropped, renamed or retyped while rows are queued.
// Source: feldera/feldera#6123, PeerDB-io/peerdb#1438, spiceai/spiceai#10969,
// ConduitIO/conduit-connector-postgres#322.
// Ideal: each row is read with the shape it had at its own LSN. Rows that lack a
// required column stop the table with a message that names column and relation;
// optional ones that are missing become absent headers.

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const (
	tenant      = "11111111-1111-4111-8111-111111111111"
	correlation = "22222222-2222-4222-8222-222222222222"
	causation   = "33333333-3333-4333-8333-333333333333"
)

// migrated is an outbox that goes through migrations, with the headers that its
// events must have.
type migrated struct {
	h       *rig.House
	k       *kafkaserver.Server
	l       *ledger
	headers map[string]string // by event id: causation, "-" where there is none
	columns string            // further columns of an insert, and their values
	values  string
	payload string // name of the payload's column
}

func newMigrated(t *testing.T, pg *pgserver.Server) *migrated {
	t.Helper()
	k := kafkaserver.Shared(t)
	m := &migrated{
		h: rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 3, nil)), k: k, headers: map[string]string{},
		columns: "causation_id", values: "'" + causation + "'", payload: "payload",
	}
	m.h.Exec(t, outboxTable("tenant_id", "text"))
	// Without column lists: with them Postgres itself refuses to drop a column of the list.
	m.h.Exec(t, "create publication "+m.h.Publication+" for table public.outbox with (publish = 'insert')")
	m.h.Init(t)
	m.l = newLedger(m.h)
	return m
}

// row writes one event with the columns that there are now.
func (m *migrated) row(x *txn) {
	x.t.Helper()
	columns, values := "", ""
	if m.columns != "" {
		columns, values = ", "+m.columns, ", "+m.values
	}
	m.l.insert = strings.NewReplacer(
		"payload,", m.payload+", tenant_id, correlation_id"+columns+",",
		"p::jsonb,", "p::jsonb, '"+tenant+"', '"+correlation+"'"+values+",").Replace(forzeInsert)
	for _, id := range x.write("a") {
		m.headers[id] = "-"
		if strings.Contains(m.columns, "causation_id") {
			m.headers[id] = causation
		}
	}
}

// steps runs each migration between two rows: first each on its own, then again,
// the other way round, in one transaction with its rows.
func (m *migrated) steps(t *testing.T) {
	t.Helper()
	apart := func(ddl string, after func()) {
		m.l.transaction(t, m.row)
		m.h.Exec(t, ddl)
		after()
		m.l.transaction(t, m.row)
	}
	together := func(ddl string, after func()) {
		m.l.transaction(t, func(x *txn) {
			m.row(x)
			x.exec(ddl)
			after()
			m.row(x)
		})
	}
	none := func() {}
	apart("alter table public.outbox add column x text", func() { m.columns, m.values = "x, causation_id", "'x', '"+causation+"'" })
	apart("alter table public.outbox drop column causation_id", func() { m.columns, m.values = "x", "'x'" })
	apart("alter table public.outbox alter column tenant_id type uuid using tenant_id::uuid", none)
	together("alter table public.outbox add column causation_id uuid", func() { m.columns, m.values = "x, causation_id", "'x', '"+causation+"'" })
	together("alter table public.outbox drop column x", func() { m.columns, m.values = "causation_id", "'"+causation+"'" })
	together("alter table public.outbox alter column tenant_id type text", none)
	together("alter table public.outbox rename column x2 to x3", none)
}

// judge holds the records against what was committed, headers too.
func (m *migrated) judge(t *testing.T) {
	t.Helper()
	records := m.k.Consume(t, m.h.Topic)
	m.l.judge(t, records, 0)
	for _, rec := range records {
		got := [3]string{headerOrDash(rec, "forze_tenant_id"), headerOrDash(rec, "forze_correlation_id"), headerOrDash(rec, "forze_causation_id")}
		if want := [3]string{tenant, correlation, m.headers[oracle.EventID(rec)]}; got != want {
			t.Errorf("record %d@%d has tenant, correlation and causation %v, want %v", rec.Partition, rec.Offset, got, want)
		}
	}
}

func headerOrDash(rec *kgo.Record, name string) string {
	if value, ok := header(rec, name); ok {
		return value
	}
	return "-"
}

func TestC13RowIsReadInTheShapeItHadWhenItWasWritten(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		m := newMigrated(t, pgserver.Shared(t, v))
		m.h.Exec(t, "alter table public.outbox add column x2 text")
		m.steps(t) // with the relay stopped
		r := m.h.Start(t)
		r.WaitReady(readyWithin)
		m.l.drained(t, 30*time.Second)
		m.judge(t)
		m.h.Exec(t, "alter table public.outbox rename column x3 to x2")
		m.steps(t) // with the relay running
		m.l.drained(t, 30*time.Second)
		m.judge(t)
		r.WaitReady(readyWithin)
		stopsClean(t, r)
	}, pgserver.Versions...)
}

func TestC13RowWithoutARequiredColumnStopsTheTableByName(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{false, true} {
		name := map[bool]string{false: "stopped", true: "running"}[running]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) {
				m := newMigrated(t, pgserver.Start(t, pgserver.Options{Version: v}))
				var r *rig.Relay
				if running {
					r = m.h.Start(t)
					r.WaitReady(readyWithin)
				}
				m.l.transaction(t, m.row)
				m.h.Exec(t, "alter table public.outbox rename column payload to body")
				m.payload = "body"
				m.l.transaction(t, m.row)
				if !running {
					r = m.h.Start(t)
				}
				reason := r.WaitNotReady(30*time.Second, `"halted"`)
				contains(t, "/readyz", reason, "payload", "public.outbox", "schema.columns")
				// What was written before the change has its shape, and comes.
				records := m.k.ConsumeN(t, 1, 30*time.Second, m.h.Topic)
				if len(records) != 1 {
					t.Errorf("%d records came, want the one from before", len(records))
				}
				rig.Eventually(t, "the confirmation of the first row", 10*time.Second, func() error {
					if confirmed := parseLSN(t, m.h.ReadSlot(t).Confirmed); confirmed <= m.l.floor(0) {
						return errNothingYet
					}
					return nil
				})
				neverPast(t, []look{{confirmed: parseLSN(t, m.h.ReadSlot(t).Confirmed)}}, m.l.floor(1))
				r.Stop()
				// The remedy that it gave: the other column is mapped.
				m.h.Source = "schema: {preset: forze, columns: {payload: body}}"
				r = m.h.Start(t)
				r.WaitReady(readyWithin)
				m.l.transaction(t, m.row)
				m.l.drained(t, 30*time.Second)
				m.judge(t)
				stopsClean(t, r)
			})
		})
	}
}
