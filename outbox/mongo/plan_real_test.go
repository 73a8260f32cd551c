package mongo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// requests of a claim, from the plainest to one with every condition.
var requests = map[string]outbox.Request{
	"plain":  {Limit: 100},
	"shards": {Limit: 100, Shards: outbox.Shards{Of: 4, Own: []int{1, 3}}},
	"all": {
		Limit: 100, Shards: outbox.Shards{Of: 4, Own: []int{1, 3}}, Held: []string{"k5", "k6"}, Heads: []string{id(5)}, Loose: []string{"route2"},
		Except: ids(1, 50),
	},
}

// plan is how the server finds the rows of a stretch, and how many documents and index keys it reads for it.
func (h *house) plan(s stretch, limit int) (stages string, docs, keys int) {
	h.t.Helper()
	find := bson.D{is("find", "outbox"), is("filter", s.filter), is("limit", limit)}
	if s.sort != nil {
		find = append(find, is("sort", s.sort))
	}
	if s.hint != nil {
		find = append(find, is("hint", s.hint))
	}
	raw, err := h.c.Database().RunCommand(h.ctx(), bson.D{is("explain", find), is("verbosity", "executionStats")}).Raw()
	if err != nil {
		h.t.Fatal(err)
	}
	stats := raw.Lookup("executionStats").Document()
	for _, m := range regexp.MustCompile(`"(?:stage|indexName)": "([^"]+)"`).FindAllStringSubmatch(stats.Lookup("executionStages").String(), -1) {
		stages += m[1] + " "
	}
	return stages, number(stats.Lookup("totalDocsExamined")), number(stats.Lookup("totalKeysExamined"))
}

// A claim costs what it takes, however many rows wait: it reads the first of them from the index and
// sorts nothing. Neither does the plan depend on what the server has tried before.
func TestClaimsWalkTheIndexAndSortNothing(t *testing.T) {
	t.Parallel()
	for _, preset := range []event.Preset{event.Forze, event.Basic, event.Debezium} {
		for _, missing := range []MissingHLC{HLCFirst, HLCLast} {
			h := newHouse(t, mongoserver.Shared(t), preset, func(o *Options) { o.MissingHLC = missing })
			h.fill(preset, 4000)
			for name, req := range requests {
				for n, s := range h.l.stretches(&req) {
					what := fmt.Sprintf("%s, missing %s, %s, stretch %d", preset, missing, name, n)
					stages, docs, keys := h.plan(s, 100)
					if strings.Contains(stages+" ", "SORT ") || strings.Contains(stages, "COLLSCAN") {
						t.Errorf("%s: %s", what, stages)
					}
					// Half of the shards have about half of the rows, and the rows under way are passed.
					if most := map[string]int{"plain": 101, "shards": 500, "all": 700}[name]; docs > most || keys > most+5 {
						t.Errorf("%s: %d documents and %d keys are read: %s", what, docs, keys, stages)
					}
				}
			}
		}
	}
}

// fill makes n rows that are due, by null and by time, and as many that are not, or are published.
func (h *house) fill(preset event.Preset, n int) {
	h.t.Helper()
	var rows []any
	for i := 1; i <= n; i++ {
		row := forzeRow(i, fmt.Sprint("k", i%100))
		set := func(name string, value any) {
			row[slices.IndexFunc(row, func(e bson.E) bool { return e.Key == name })].Value = value
		}
		switch preset {
		case event.Forze:
			set("available_at", []any{nil, began, time.Now().Add(time.Hour), nil}[i%4])
			if i%4 == 3 {
				set("status", published)
			}
			if i%8 == 4 {
				set("hlc", nil)
			}
		case event.Basic:
			row = append(row, is("aggregate_id", fmt.Sprint("k", i%100)), is("aggregate_type", fmt.Sprint("route", i%3)))
			if i%2 == 0 {
				set("published_at", began)
			}
		default:
			row = append(row, is("aggregateid", fmt.Sprint("k", i%100)), is("aggregatetype", fmt.Sprint("route", i%3)))
		}
		rows = append(rows, row)
	}
	h.add(rows...)
}

// What writes to rows finds them by _id, and nothing else.
func TestRowsThatAreKnownAreFoundByTheirIds(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.fill(event.Forze, 2000)
	for what, filter := range map[string]bson.D{
		"claim": h.l.isFree(idValues(ids(1, 300)), time.Now()),
		"guard": append(bson.D{in(fieldID, idValues(ids(1, 300)))}, h.guard("x y")...),
		"only":  h.l.stretches(&outbox.Request{Limit: 300, Only: ids(1, 300)})[0].filter,
	} {
		stages, docs, keys := h.plan(stretch{filter: filter, hint: byID}, 300)
		if !strings.Contains(stages, "_id_") || docs > 300 || keys > 301 {
			t.Errorf("%s: %d documents and %d keys are read: %s", what, docs, keys, stages)
		}
	}
}

// Old rows, open claims and what counts them are found by the partial indexes alone.
func TestTheRestOfTheTableIsNeverScanned(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.fill(event.Forze, 2000)
	var f outbox.Figures
	parts := append(h.fronts(), h.l.open()...)
	for _, g := range h.gauges(&f) {
		parts = append(parts, g.stretch)
	}
	for _, s := range parts {
		if stages, _, _ := h.plan(s, 100); strings.Contains(stages, "COLLSCAN") || !strings.Contains(stages, "IXSCAN") {
			t.Errorf("%v: %s", s.filter, stages)
		}
	}
}

func TestWithoutItsIndexesTheTableWorksAllTheSame(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t), event.Forze, nil)
	h.insert(1, 20, 5)
	same(t, "with", rowIDs(h.claim(outbox.Request{Limit: 3})), ids(1, 3))
	if err := h.c.Indexes().DropAll(h.ctx()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Claim(h.ctx(), outbox.Request{Limit: 3}); event.ClassOf(err) != event.Retry {
		t.Fatalf("want a retry, got %v", err)
	}
	c := h.claim(outbox.Request{Limit: 3})
	same(t, "without", rowIDs(c), ids(4, 6))
	if lost := h.settle(outbox.Outcome{ID: id(4), Fence: c.Fence}); len(lost) > 0 {
		t.Fatal("lost")
	}
	if _, err := h.Figures(h.ctx()); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Retain(h.ctx(), time.Hour, 10); err != nil || r.Rows != 0 {
		t.Fatal(r, err)
	}
	another, _ := h.another(event.Forze, nil)
	c, err := another.Claim(h.ctx(), outbox.Request{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "another", rowIDs(c), ids(7, 8))
}
