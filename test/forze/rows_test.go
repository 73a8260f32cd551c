package forze

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/test/rig"
)

func token() string { return rand.Text()[:12] }

// row is a whole row, by column, as Postgres makes JSON of it.
type row map[string]any

// given is a row as a forze application writes it (outbox contract, 1.1). Empty texts are NULL.
type given struct {
	id, event                                 string // UUIDv7 unless given
	route                                     string // orders
	key, typ, payload, trace                  string
	tenant, execution, correlation, causation string
	occurred, created, available              time.Time
	hlc                                       int64 // 0: NULL
}

// flush inserts rows with one statement in one transaction, as forze's flush does, and
// answers their ids; those whose event id is there already are ignored.
func (d *database) flush(rows ...given) (ids []string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	sql, args := flushing(rows)
	answer, err := d.conn.Query(context.Background(), sql, args...)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Close()
	for answer.Next() {
		var id string
		var text []byte
		r := row{}
		if err := answer.Scan(&id, &text); err != nil {
			d.t.Fatal(err)
		}
		if err := json.Unmarshal(text, &r); err != nil {
			d.t.Fatal(err)
		}
		ids = append(ids, id)
		d.before[id] = r
	}
	if err := answer.Err(); err != nil {
		d.t.Fatal(err)
	}
	return ids
}

// flushing is forze's INSERT.
func flushing(rows []given) (sql string, args []any) {
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	moment := func(at time.Time) any {
		if at.IsZero() {
			return nil
		}
		return at
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	var values []string
	for _, g := range rows {
		fill(&g.id, uuid.Must(uuid.NewV7()).String())
		fill(&g.event, uuid.Must(uuid.NewV7()).String())
		fill(&g.route, "orders")
		fill(&g.typ, "order.created")
		fill(&g.payload, `{"n": 1}`)
		if g.occurred.IsZero() {
			g.occurred = now
		}
		if g.created.IsZero() {
			g.created = now
		}
		var hlc any
		if g.hlc != 0 {
			hlc = g.hlc
		}
		all := []any{
			g.id, g.route, g.event, g.typ, text(g.tenant), text(g.execution), text(g.correlation), text(g.causation), g.occurred, g.payload,
			"pending", g.created, 0, moment(g.available), text(g.key), hlc, text(g.trace),
		}
		marks := make([]string, len(all))
		for i := range all {
			marks[i] = fmt.Sprintf("$%d", len(args)+i+1)
		}
		values = append(values, "("+strings.Join(marks, ", ")+")")
		args = append(args, all...)
	}
	return `insert into public.outbox (id, outbox_route, event_id, event_type, tenant_id, execution_id, correlation_id, causation_id, occurred_at,
		payload, status, created_at, attempts, available_at, ordering_key, hlc, traceparent) values ` + strings.Join(values, ", ") +
		` on conflict (outbox_route, event_id) do nothing returning id::text, to_jsonb(outbox.*)`, args
}

func fill(s *string, def string) {
	if *s == "" {
		*s = def
	}
}

// many are n rows, each of its own key or of the given one.
func many(n int, key string) (rows []given) {
	for i := range n {
		g := given{payload: fmt.Sprintf(`{"n": %d}`, i), key: key}
		if key == "" {
			g.key = fmt.Sprintf("key %d", i)
		}
		rows = append(rows, g)
	}
	return rows
}

// read reads a row as it is now.
func (d *database) read(id string) row {
	d.t.Helper()
	r := row{}
	if err := json.Unmarshal([]byte(d.ask("select to_jsonb(o)::text from public.outbox o where id = $1::uuid", id)), &r); err != nil {
		d.t.Fatalf("row %s: %v", id, err)
	}
	return r
}

// changes are the columns that differ from the row as it was inserted: a value, nil
// for NULL, or span for a time.
type changes map[string]any

// span bounds a time.
type span struct{ from, until time.Time }

// since is any time between then and now.
func (d *database) since(then time.Time) span { d.t.Helper(); return span{then, d.now()} }

// ever is a time between the row's insertion, or a little before, and now.
func (d *database) ever() span { d.t.Helper(); return d.since(d.now().Add(-10 * time.Minute)) }

// isPublished is what the table reader leaves; with fewer or more changes in also.
func (d *database) isPublished(id string, also ...changes) {
	d.t.Helper()
	c := changes{"status": "published", "processing_at": d.ever(), "published_at": d.ever()}
	for _, a := range also {
		maps.Copy(c, a)
	}
	d.is(id, c)
}

// is holds the whole row against what it was inserted as.
func (d *database) is(id string, c changes) {
	d.t.Helper()
	if err := d.compare(id, c); err != nil {
		d.t.Error(err)
	}
}

// turns waits until the row is that.
func (d *database) turns(id string, c changes) {
	d.t.Helper()
	rig.Eventually(d.t, "the row", soon, func() error { return d.compare(id, c) })
}

func (d *database) compare(id string, c changes) error {
	d.t.Helper()
	got, want := d.read(id), maps.Clone(d.before[id])
	if want == nil {
		d.t.Fatalf("row %s was not inserted by the test", id)
	}
	maps.Copy(want, row(c))
	if s, _ := want["status"].(string); s == "" || len(got) != len(want) {
		return fmt.Errorf("row %s has %d columns, want %d", id, len(got), len(want))
	}
	var wrong []string
	for _, column := range slices.Sorted(maps.Keys(want)) {
		if s, ok := want[column].(span); ok {
			text, _ := got[column].(string)
			at, err := time.Parse(time.RFC3339Nano, text)
			if err != nil || at.Before(s.from) || at.After(s.until) {
				wrong = append(wrong, fmt.Sprintf("%s is %v, want a time from %s to %s", column, got[column], s.from.UTC(), s.until.UTC()))
			}
			continue
		}
		w := want[column]
		if n, ok := w.(int); ok {
			w = float64(n)
		}
		if !reflect.DeepEqual(got[column], w) {
			wrong = append(wrong, fmt.Sprintf("%s is %v, want %v", column, got[column], w))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("row %s: %s", id, strings.Join(wrong, "; "))
	}
	return nil
}

// same fails the test when two lists differ.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %q, want %q", what, got, want)
	}
}
