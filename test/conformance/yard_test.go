package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/outbox"
)

// yard is a backend as one process has opened it.
type yard struct {
	outbox.Table
	backend
	t      *testing.T
	o      options
	leases outbox.Leases
	k      parking
}

func newYard(t *testing.T, b backend, o options) *yard {
	t.Helper()
	y := &yard{backend: b, t: t, o: o}
	f := faultOf(t)
	if f.options != nil {
		f.options(&o)
	}
	y.Table, y.leases, y.k = b.open(t, o)
	f.breakYard(y)
	return y
}

// another is the same outbox as another process has opened it.
func (y *yard) another(o options) *yard {
	y.t.Helper()
	return newYard(y.t, y.backend, o)
}

func (y *yard) ctx() context.Context { return y.t.Context() }

// put makes pending rows from..to: stamps ascend with n, keys are k<n modulo keys>, routes
// route<n modulo 3>, and each was made a millisecond after the one before.
func (y *yard) put(from, to, keys int) {
	y.t.Helper()
	y.insert(y.t, from, to, keys)
}

// made is when a row of put's was made.
func made(n int) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, n*int(time.Millisecond), time.UTC)
}

// eventID is that of a row of put's.
func eventID(n int) string { return fmt.Sprintf("00000000-0000-0000-0001-%012d", n) }

type fields = map[string]any

func (y *yard) change(f fields, rows ...int) {
	y.t.Helper()
	y.set(y.t, rows, f)
}

// span are the numbers from..to.
func span(from, to int) (list []int) {
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

func (y *yard) ids(rows ...int) (list []string) {
	for _, n := range rows {
		list = append(list, y.id(n))
	}
	return list
}

func (y *yard) claim(req outbox.Request) *outbox.Claim {
	y.t.Helper()
	c, err := y.Claim(y.ctx(), req)
	if err != nil {
		y.t.Fatal(err)
	}
	return c
}

func (y *yard) settle(outcomes ...outbox.Outcome) []int {
	y.t.Helper()
	lost, err := y.Settle(y.ctx(), outcomes)
	if err != nil {
		y.t.Fatal(err)
	}
	return lost
}

func (y *yard) mark(marks ...outbox.Mark) outbox.Marked {
	y.t.Helper()
	m, err := y.Mark(y.ctx(), marks)
	if err != nil {
		y.t.Fatal(err)
	}
	return m
}

// row is a row's state in words, all that a transition may touch; times by their presence. A
// claim's time means nothing once the row has its outcome.
func (y *yard) row(n int) string {
	y.t.Helper()
	f := y.read(y.t, n)
	if f == nil {
		return "absent"
	}
	words := []string{f["status"].(string), fmt.Sprint("attempts=", f["attempts"])}
	if f["published_at"] != nil {
		words = append(words, "published_at")
	}
	if f["processing_at"] != nil && (f["status"] == "pending" || f["status"] == "processing") {
		words = append(words, "processing_at")
	}
	switch at, _ := f["available_at"].(time.Time); {
	case at.IsZero():
	case at.After(y.now(y.t)):
		words = append(words, "later")
	default:
		words = append(words, "due")
	}
	if f["last_error"] != nil {
		words = append(words, "error="+f["last_error"].(string))
	}
	return strings.Join(words, " ")
}

func (y *yard) wantRow(n int, want string) {
	y.t.Helper()
	if got := y.row(n); got != want {
		y.t.Fatalf("row %d is %q, want %q", n, got, want)
	}
}

func rowIDs(c *outbox.Claim) (list []string) {
	for i := range c.Rows {
		list = append(list, c.Rows[i].ID)
	}
	return list
}

// same compares ids with those of rows.
func (y *yard) same(what string, got []string, want ...int) {
	y.t.Helper()
	if strings.Join(got, " ") != strings.Join(y.ids(want...), " ") {
		y.t.Fatalf("%s: got %v, want %v", what, got, y.ids(want...))
	}
}

// took compares a claim's rows.
func (y *yard) took(what string, c *outbox.Claim, want ...int) {
	y.t.Helper()
	y.same(what, rowIDs(c), want...)
}

// shards says in which shard each row is, of those that are pending.
func (y *yard) shards(of int) map[string]int {
	y.t.Helper()
	o := y.o
	o.lease = true // its claims write nothing
	view, shards := y.another(o), map[string]int{}
	for s := range of {
		for _, id := range rowIDs(view.claim(outbox.Request{Limit: 10_000, Shards: outbox.Shards{Of: of, Own: []int{s}}})) {
			shards[id] = s
		}
	}
	return shards
}
