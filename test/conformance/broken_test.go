package conformance

import (
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
)

// brokenEnv makes the tests run over backends that break, each, just what the test promises.
const brokenEnv = "WALRELAY_CONFORMANCE_BROKEN"

var broken = os.Getenv(brokenEnv) != ""

// A promise that no broken backend fails is none. The tests of this package run once more, in a
// process of their own, over backends with one fault each: all of them have to fail.
func TestEachPromiseFailsOnABackendThatBreaksIt(t *testing.T) {
	if broken {
		return
	}
	list, err := exec.Command(os.Args[0], "-test.list", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v")
	cmd.Env = append(os.Environ(), brokenEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("nothing failed:\n%s", out)
	}
	failed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^--- FAIL: (\w+)`).FindAllSubmatch(out, -1) {
		failed[string(m[1])] = true
	}
	names := regexp.MustCompile(`(?m)^Test\w+$`).FindAllString(string(list), -1)
	for _, name := range names {
		if name != t.Name() && !failed[name] {
			t.Errorf("%s passes although its backend is broken", name)
		}
	}
	if len(failed) == 0 || t.Failed() {
		t.Logf("%s", out)
	}
	for name := range maps.Keys(faults) {
		if !slices.Contains(names, name) {
			t.Errorf("there is a fault for %s, but no such test", name)
		}
	}
}

// fault is what is wrong with the backend of one test.
type fault struct {
	options func(o *options)
	table   func(t badTable) badTable
	leases  func(l outbox.Leases) outbox.Leases
	parking func(k parking) parking
	source  func(s relay.Source) relay.Source
}

// faultOf is the fault that a test runs with; nothing is broken in the ordinary run.
func faultOf(t *testing.T) fault {
	name, _, _ := strings.Cut(t.Name(), "/")
	if !broken {
		return fault{}
	}
	return faults[name]
}

func (f fault) breakYard(y *yard) {
	if f.table != nil {
		y.Table = f.table(badTable{Table: y.Table})
	}
	if f.leases != nil {
		y.leases = f.leases(y.leases)
	}
	if f.parking != nil {
		y.k = f.parking(y.k)
	}
}

// badTable is a table with what is asked of it, or what it answers, falsified.
type badTable struct {
	outbox.Table
	request func(r *outbox.Request)
	claimed func(c *outbox.Claim)
	outcome func(o *outbox.Outcome)
	lost    func(lost []int) []int
	held    func(asked, held []string) []string
	reclaim func(r *outbox.Reclaim)
	requeue func(asked, n int) int
	more    func(more bool) bool
	filter  func(f *outbox.Filter)
	mark    func(m *outbox.Mark)
	marked  func(m *outbox.Marked)
	lookUp  func(asked []string, done map[string]bool)
	figures func(f *outbox.Figures)
	keep    func(d time.Duration) time.Duration
}

func call[T any](f func(*T), v *T) {
	if f != nil {
		f(v)
	}
}

func (b badTable) Claim(ctx context.Context, r outbox.Request) (*outbox.Claim, error) {
	call(b.request, &r)
	c, err := b.Table.Claim(ctx, r)
	if err == nil {
		call(b.claimed, c)
	}
	return c, err
}

func (b badTable) Pending(ctx context.Context, r outbox.Request) ([]string, event.Position, error) {
	call(b.request, &r)
	return b.Table.Pending(ctx, r)
}

func (b badTable) Settle(ctx context.Context, outcomes []outbox.Outcome) ([]int, error) {
	outcomes = slices.Clone(outcomes)
	for i := range outcomes {
		call(b.outcome, &outcomes[i])
	}
	lost, err := b.Table.Settle(ctx, outcomes)
	if b.lost != nil {
		lost = b.lost(lost)
	}
	return lost, err
}

func (b badTable) Renew(ctx context.Context, f outbox.Fence, ids []string) (outbox.Fence, []string, error) {
	f, held, err := b.Table.Renew(ctx, f, ids)
	if b.held != nil {
		held = b.held(ids, held)
	}
	return f, held, err
}

func (b badTable) Reclaim(ctx context.Context, r outbox.Reclaim) (int, error) {
	call(b.reclaim, &r)
	return b.Table.Reclaim(ctx, r)
}

func (b badTable) Requeue(ctx context.Context, ids []string) (int, error) {
	n, err := b.Table.Requeue(ctx, ids)
	if b.requeue != nil {
		n = b.requeue(len(ids), n)
	}
	return n, err
}

func (b badTable) Unfinished(ctx context.Context, s outbox.Shards, limit int) ([]outbox.Unfinished, bool, error) {
	rows, more, err := b.Table.Unfinished(ctx, s, limit)
	if b.more != nil {
		more = b.more(more)
	}
	return rows, more, err
}

func (b badTable) Read(ctx context.Context, f outbox.Filter) (*outbox.Claim, error) {
	call(b.filter, &f)
	return b.Table.Read(ctx, f)
}

func (b badTable) Mark(ctx context.Context, marks []outbox.Mark) (outbox.Marked, error) {
	marks = slices.Clone(marks)
	for i := range marks {
		call(b.mark, &marks[i])
	}
	m, err := b.Table.Mark(ctx, marks)
	call(b.marked, &m)
	return m, err
}

func (b badTable) LookUp(ctx context.Context, ids []string) (map[string]bool, error) {
	done, err := b.Table.LookUp(ctx, ids)
	if b.lookUp != nil {
		b.lookUp(ids, done)
	}
	return done, err
}

func (b badTable) Figures(ctx context.Context) (outbox.Figures, error) {
	f, err := b.Table.Figures(ctx)
	call(b.figures, &f)
	return f, err
}

func (b badTable) Retain(ctx context.Context, keep time.Duration, batch int) (outbox.Retained, error) {
	if b.keep != nil {
		keep = b.keep(keep)
	}
	return b.Table.Retain(ctx, keep, batch)
}

// badLeases falsifies what is asked for.
type badLeases struct {
	outbox.Leases
	request func(r *outbox.LeaseRequest)
	answer  func(s *outbox.LeaseState)
}

func (b badLeases) Renew(ctx context.Context, holder string, ttl time.Duration, r outbox.LeaseRequest) (outbox.LeaseState, error) {
	call(b.request, &r)
	s, err := b.Leases.Renew(ctx, holder, ttl, r)
	call(b.answer, &s)
	return s, err
}

// badParking falsifies events on their way in and out.
type badParking struct {
	parking
	park   func(p *outbox.Parked)
	leave  func(p *outbox.Parked) (ignore bool)
	shown  func(p *outbox.Parked)
	held   func(h []outbox.HeldKey) []outbox.HeldKey
	whole  func(list []outbox.Parked)
	filter func(f *outbox.ParkedFilter)
	kept   func(ctx context.Context, k parking) ([]outbox.Parked, error)
	drop   func(ctx context.Context, k parking, ids []int64) (int, error)
	retry  func(n int) int
	counts func(c map[outbox.ParkState]int64)
	class  func(err error) error
}

func (b badParking) Park(ctx context.Context, p outbox.Parked) error {
	call(b.park, &p)
	err := b.parking.Park(ctx, p)
	if b.class != nil {
		err = b.class(err)
	}
	return err
}

func (b badParking) LeaveBehind(ctx context.Context, p outbox.Parked) error {
	if b.leave != nil && b.leave(&p) {
		return nil
	}
	return b.parking.LeaveBehind(ctx, p)
}

func (b badParking) Show(ctx context.Context, id int64) (*outbox.Parked, error) {
	p, err := b.parking.Show(ctx, id)
	if p != nil {
		call(b.shown, p)
	}
	return p, err
}

func (b badParking) Held(ctx context.Context) ([]outbox.HeldKey, error) {
	h, err := b.parking.Held(ctx)
	if b.held != nil {
		h = b.held(h)
	}
	return h, err
}

func (b badParking) Whole(ctx context.Context, limit int) ([]outbox.Parked, error) {
	list, err := b.parking.Whole(ctx, limit)
	if b.whole != nil {
		b.whole(list)
	}
	return list, err
}

func (b badParking) List(ctx context.Context, f outbox.ParkedFilter) ([]outbox.Parked, error) {
	call(b.filter, &f)
	return b.parking.List(ctx, f)
}

func (b badParking) Kept(ctx context.Context) ([]outbox.Parked, error) {
	if b.kept != nil {
		return b.kept(ctx, b.parking)
	}
	return b.parking.Kept(ctx)
}

func (b badParking) Drop(ctx context.Context, ids []int64) (int, error) {
	if b.drop != nil {
		return b.drop(ctx, b.parking, ids)
	}
	return b.parking.Drop(ctx, ids)
}

func (b badParking) Retry(ctx context.Context, ids []int64) (int, error) {
	n, err := b.parking.Retry(ctx, ids)
	if b.retry != nil {
		n = b.retry(n)
	}
	return n, err
}

func (b badParking) Counts(ctx context.Context) (map[outbox.ParkState]int64, error) {
	c, err := b.parking.Counts(ctx)
	if b.counts != nil {
		b.counts(c)
	}
	return c, err
}

// badSource falsifies what a source hands out and is told.
type badSource struct {
	relay.Source
	next    func(ctx context.Context, s relay.Source) (*event.Batch, error)
	finish  func()
	confirm func(pos event.Position) bool // pass it on
}

func (b *badSource) Next(ctx context.Context) (*event.Batch, error) {
	if b.next != nil {
		return b.next(ctx, b.Source)
	}
	return b.Source.Next(ctx)
}

func (b *badSource) Finish() {
	if b.finish != nil {
		b.finish()
		return
	}
	b.Source.Finish()
}

func (b *badSource) Confirm(pos event.Position) {
	if b.confirm == nil || b.confirm(pos) {
		b.Source.Confirm(pos)
	}
}

// spoilt is a source whose batches are changed.
func spoilt(change func(b *event.Batch)) func(s relay.Source) relay.Source {
	return func(s relay.Source) relay.Source {
		return &badSource{Source: s, next: func(ctx context.Context, s relay.Source) (*event.Batch, error) {
			b, err := s.Next(ctx)
			if err == nil {
				change(b)
			}
			return b, err
		}}
	}
}

// ends is a source that ends as soon as it is told to.
func ends(s relay.Source) relay.Source {
	b := &badSource{Source: s}
	over := false
	b.finish = func() { over = true }
	b.next = func(ctx context.Context, s relay.Source) (*event.Batch, error) {
		if over {
			return nil, io.EOF
		}
		return s.Next(ctx)
	}
	return b
}
