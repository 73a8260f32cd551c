package outboxfake

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// The states of a row.
const (
	Pending    = "pending"
	Processing = "processing"
	Published  = "published"
	Failed     = "failed"
)

// Row is one row.
type Row struct {
	ID, EventID, Key, Route string // Key as in the column: may be empty
	Status                  string
	Attempts                int
	Error                   string
	Available, ProcessingAt time.Time
	PublishedAt             time.Time
	Seq                     int          // order in the table
	free                    bool         // released, and still locked by its claim
	Fence                   outbox.Fence // of the claim that has it
	Locked                  bool         // by somebody's open transaction: claims skip it
}

// EffectiveKey is the key, or the event id.
func (r *Row) EffectiveKey() string {
	if r.Key == "" {
		return r.EventID
	}
	return r.Key
}

// DB is one database: what several processes share.
type DB struct {
	mu     sync.Mutex
	rows   map[string]*Row
	order  []*Row
	seq    int
	end    event.LSN
	claims int
	parked []outbox.Parked
	nextID int64
	shards map[int]*lease
	alive  map[string]time.Time
	marks  map[string]int // how often a row became published
}

// NewDB makes an empty one.
func NewDB() *DB {
	return &DB{rows: map[string]*Row{}, shards: map[int]*lease{}, alive: map[string]time.Time{}, marks: map[string]int{}}
}

// Insert adds a row, pending, at the end of the table, and answers the end of the log.
func (db *DB) Insert(r Row) event.LSN {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.seq++
	r.Seq = db.seq
	if r.ID == "" {
		r.ID = fmt.Sprintf("r%06d", db.seq)
	}
	if r.EventID == "" {
		r.EventID = "e" + r.ID
	}
	if r.Route == "" {
		r.Route = "orders"
	}
	if r.Status == "" {
		r.Status = Pending
	}
	row := &r
	db.rows[r.ID] = row
	db.order = append(db.order, row)
	db.end += 10
	return db.end
}

// End is the end of the log.
func (db *DB) End() event.LSN {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.end
}

// Row is a copy of a row; nil when it is not there.
func (db *DB) Row(id string) *Row {
	db.mu.Lock()
	defer db.mu.Unlock()
	if r := db.rows[id]; r != nil {
		c := *r
		return &c
	}
	return nil
}

// Set changes a row as somebody else might.
func (db *DB) Set(id string, f func(*Row)) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if r := db.rows[id]; r != nil {
		f(r)
	}
}

// Delete removes a row.
func (db *DB) Delete(id string) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if r := db.rows[id]; r != nil {
		delete(db.rows, id)
		db.order = slices.DeleteFunc(db.order, func(x *Row) bool { return x == r })
	}
}

// Count is the number of rows in a state.
func (db *DB) Count(status string) (n int) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, r := range db.order {
		if r.Status == status {
			n++
		}
	}
	return n
}

// Table is the outbox table of a DB as one process sees it.
type Table struct {
	*DB
	// Kind says what its rows can carry.
	Kind outbox.Traits
	// Before, when set, is asked before each statement; its error is the statement's.
	Before func(op string) error
	// After, when set, is asked after each: its error hides what was done.
	After func(op string) error
	// Slow, when set, is called after a statement took effect and before its answer arrives.
	Slow func(op string)

	fences []outbox.Fence // of its claims, where they are locks
}

// ForzeRow, ForzeLease, Basic and Debezium are the traits of the presets.
var (
	ForzeRow   = outbox.Traits{States: true, Retries: true, Claims: true}
	ForzeLease = outbox.Traits{States: true, Retries: true}
	Basic      = outbox.Traits{States: true}
	Debezium   = outbox.Traits{States: true, Claims: true}
)

// Relation is the table's name.
func (t *Table) Relation() string { return "public.outbox" }

// Traits are its kind.
func (t *Table) Traits() outbox.Traits { return t.Kind }

func (t *Table) enter(ctx context.Context, op string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if t.Before != nil {
		return t.Before(op)
	}
	return nil
}

func (t *Table) linger(op string) {
	if t.Slow != nil {
		t.Slow(op)
	}
}

func (t *Table) leave(op string) error {
	if t.After != nil {
		return t.After(op)
	}
	return nil
}

// Shard is the part of the key space that a key is in.
func Shard(key string, of int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum32() % uint32(of))
}

func in(s outbox.Shards, r *Row) bool {
	return s.Of == 0 || slices.Contains(s.Own, Shard(r.EffectiveKey(), s.Of))
}

func set(ids []string) map[string]bool {
	m := make(map[string]bool, len(ids))
	for _, id := range ids {
		m[id] = true
	}
	return m
}

// Claim takes rows in table order.
func (t *Table) Claim(ctx context.Context, req outbox.Request) (*outbox.Claim, error) {
	if err := t.enter(ctx, "claim"); err != nil {
		return nil, err
	}
	defer t.linger("claim")
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	held, heads, loose, except, only := set(req.Held), set(req.Heads), set(req.Loose), set(req.Except), set(req.Only)
	c := &outbox.Claim{}
	var fence time.Time
	if t.Kind.Claims {
		c.Fence, fence = t.fence()
		if t.locks() {
			t.fences = append(t.fences, c.Fence)
		}
	}
	for _, r := range t.order {
		switch {
		case len(c.Rows) == req.Limit:
		case r.Status != Pending || r.Locked || r.Available.After(now) || !in(req.Shards, r) || except[r.ID]:
			continue
		case req.Only != nil && !only[r.ID]:
			continue
		case held[r.EffectiveKey()] && !loose[r.Route] && !heads[r.ID]:
			continue
		default:
			if t.Kind.Claims {
				r.Status, r.ProcessingAt = Processing, fence
				r.Fence = c.Fence
			}
			c.Rows = append(c.Rows, t.row(r))
		}
	}
	return c, t.leave("claim")
}

func (t *Table) row(r *Row) outbox.Row {
	ev := event.Event{Relation: t.Relation()}
	ev.Fields[event.RowID] = []byte(r.ID)
	ev.Fields[event.EventID] = []byte(r.EventID)
	ev.Fields[event.Route] = []byte(r.Route)
	if r.Key != "" {
		ev.Fields[event.Key] = []byte(r.Key)
	}
	return outbox.Row{Event: ev, ID: r.ID, Key: r.EffectiveKey(), Route: r.Route, Attempts: r.Attempts}
}

// Settle writes outcomes.
func (t *Table) Settle(ctx context.Context, outcomes []outbox.Outcome) (lost []int, err error) {
	if err := t.enter(ctx, "settle"); err != nil {
		return nil, err
	}
	defer t.linger("settle")
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for i, o := range outcomes {
		r := t.rows[o.ID]
		ours := r != nil && (t.Kind.Claims && r.Status == Processing && r.Fence == o.Fence ||
			!t.Kind.Claims && r.Status == Pending)
		if !ours {
			lost = append(lost, i)
			continue
		}
		switch o.Verdict {
		case outbox.Published:
			r.Status, r.PublishedAt, r.Error = Published, now, ""
			t.marks[r.ID]++
		case outbox.Retry:
			r.Status, r.ProcessingAt, r.Attempts = Pending, time.Time{}, o.Attempts
			r.Available, r.Error = now.Add(o.Delay), o.Error
		case outbox.Failed:
			r.Status, r.Error = Failed, o.Error
		case outbox.Released:
			if r.free = t.locks(); !r.free {
				r.Status, r.ProcessingAt = Pending, time.Time{}
			}
		}
	}
	if t.locks() {
		t.unlock()
	}
	return lost, t.leave("settle")
}

// locks: a claim is an open transaction that locks its rows.
func (t *Table) locks() bool { return t.Kind.Claims && !t.Kind.Retries }

// Disconnect ends the process's transactions: what it has locked is free.
func (t *Table) Disconnect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.order {
		if t.locks() && r.Status == Processing && slices.Contains(t.fences, r.Fence) {
			r.Status, r.ProcessingAt, r.free = Pending, time.Time{}, false
		}
	}
}

// unlock ends the transactions in which every row has its outcome.
func (t *Table) unlock() {
	open := map[outbox.Fence]bool{}
	for _, r := range t.order {
		if r.Status == Processing && !r.free {
			open[r.Fence] = true
		}
	}
	for _, r := range t.order {
		if r.Status == Processing && !open[r.Fence] {
			r.Status, r.ProcessingAt, r.free = Pending, time.Time{}, false
		}
	}
}

// Renew puts claims under a new fence.
func (t *Table) Renew(ctx context.Context, fence outbox.Fence, ids []string) (outbox.Fence, []string, error) {
	if err := t.enter(ctx, "renew"); err != nil {
		return "", nil, err
	}
	defer t.linger("renew")
	t.mu.Lock()
	defer t.mu.Unlock()
	renewed, now := t.fence()
	var held []string
	for _, id := range ids {
		if r := t.rows[id]; r != nil && r.Status == Processing && r.Fence == fence {
			r.ProcessingAt = now
			r.Fence = renewed
			held = append(held, id)
		}
	}
	return renewed, held, t.leave("renew")
}

// Reclaim gives stale claims back.
func (t *Table) Reclaim(ctx context.Context, req outbox.Reclaim) (n int, err error) {
	if err := t.enter(ctx, "reclaim"); err != nil {
		return 0, err
	}
	defer t.linger("reclaim")
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	except := set(req.Except)
	for _, r := range t.order {
		if r.Status != Processing || !in(req.Shards, r) || except[r.ID] || n == req.Limit {
			continue
		}
		stale := req.OlderThan > 0 && now.Sub(r.ProcessingAt) > req.OlderThan
		for _, ten := range req.Tenures {
			from, until := parse(ten.From), parse(ten.Until)
			stale = stale || req.Shards.Of > 0 && Shard(r.EffectiveKey(), req.Shards.Of) == ten.Shard &&
				!r.ProcessingAt.Before(from) && !r.ProcessingAt.After(until)
		}
		if stale {
			r.Status, r.ProcessingAt, r.Available = Pending, time.Time{}, now
			r.Attempts++
			n++
		}
	}
	return n, t.leave("reclaim")
}

// Unfinished lists rows that hold their key.
func (t *Table) Unfinished(ctx context.Context, shards outbox.Shards, limit int) (list []outbox.Unfinished, more bool, err error) {
	if err := t.enter(ctx, "unfinished"); err != nil {
		return nil, false, err
	}
	defer t.linger("unfinished")
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.order {
		waits := r.Status == Pending && r.Attempts > 0
		if !in(shards, r) || !waits && r.Status != Processing {
			continue
		}
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, outbox.Unfinished{
			ID: r.ID, Key: r.EffectiveKey(), Route: r.Route, Processing: r.Status == Processing,
			Due: r.Status == Pending && !r.Available.After(time.Now()),
		})
	}
	return list, false, t.leave("unfinished")
}

// Pending is a snapshot of what a claim would take, and then the end of the log.
func (t *Table) Pending(ctx context.Context, req outbox.Request) (ids []string, at event.Position, err error) {
	if err := t.enter(ctx, "pending"); err != nil {
		return nil, at, err
	}
	defer t.linger("pending")
	t.mu.Lock()
	defer t.mu.Unlock()
	held, heads, loose := set(req.Held), set(req.Heads), set(req.Loose)
	for _, r := range t.order {
		passed := held[r.EffectiveKey()] && !loose[r.Route] && !heads[r.ID]
		if r.Status == Pending && !r.Available.After(time.Now()) && in(req.Shards, r) && !passed && len(ids) < req.Limit {
			ids = append(ids, r.ID)
		}
	}
	return ids, event.AtLSN(t.end), t.leave("pending")
}

// Mark writes the outcome of events that the log brought.
func (t *Table) Mark(ctx context.Context, marks []outbox.Mark) (m outbox.Marked, err error) {
	if err := t.enter(ctx, "mark"); err != nil {
		return m, err
	}
	defer t.linger("mark")
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range marks {
		switch r := t.rows[k.ID]; {
		case r == nil:
			m.Absent++
			continue
		case r.Status == Pending:
			m.Pending++
			t.mark(r, k)
		case r.Status == Processing:
			m.Foreign++
			t.mark(r, k)
		default:
			m.Settled++
		}
	}
	return m, t.leave("mark")
}

func (t *Table) mark(r *Row, k outbox.Mark) {
	if r.Status, r.Error = Published, ""; k.Error != "" && t.Kind.Retries {
		r.Status, r.Error = Failed, k.Error
	}
	t.marks[r.ID]++
}

// LookUp answers which ids are not pending any more.
func (t *Table) LookUp(ctx context.Context, ids []string) (map[string]bool, error) {
	if err := t.enter(ctx, "lookup"); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	done := map[string]bool{}
	for _, id := range ids {
		if r := t.rows[id]; r != nil && r.Status != Pending {
			done[id] = true
		}
	}
	return done, t.leave("lookup")
}

// Requeue makes failed rows pending again.
func (t *Table) Requeue(ctx context.Context, ids []string) (n int, err error) {
	if err := t.enter(ctx, "requeue"); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range ids {
		if r := t.rows[id]; r != nil && r.Status == Failed {
			requeue(r)
			n++
		}
	}
	return n, t.leave("requeue")
}

func requeue(r *Row) {
	r.Status, r.Attempts, r.Error, r.Available = Pending, 0, "", time.Time{}
	r.ProcessingAt, r.PublishedAt = time.Time{}, time.Time{}
}

// Read gives published rows again.
func (t *Table) Read(ctx context.Context, f outbox.Filter) (*outbox.Claim, error) {
	if err := t.enter(ctx, "read"); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &outbox.Claim{}
	list := slices.Clone(t.order)
	slices.SortStableFunc(list, func(a, b *Row) int { return cmp.Compare(a.PublishedAt.UnixNano(), b.PublishedAt.UnixNano()) })
	after := f.After == ""
	for _, r := range list {
		switch {
		case r.Status != Published || f.EventID != "" && r.EventID != f.EventID || f.Route != "" && r.Route != f.Route:
		case !after:
			after = r.ID == f.After
		case len(c.Rows) < f.Limit:
			c.Rows = append(c.Rows, t.row(r))
		}
	}
	return c, t.leave("read")
}

// Figures are the gauges; the age of the oldest pending row is not kept here.
func (t *Table) Figures(ctx context.Context) (f outbox.Figures, err error) {
	if err := t.enter(ctx, "figures"); err != nil {
		return f, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.order {
		switch r.Status {
		case Pending:
			f.Pending++
			if r.Attempts > 0 {
				f.Retrying++
			}
		case Processing:
			f.Processing++
		case Failed:
			f.Failed++
		}
	}
	return f, t.leave("figures")
}

// Retain deletes published rows.
func (t *Table) Retain(ctx context.Context, keep time.Duration, batch int) (res outbox.Retained, err error) {
	if err := t.enter(ctx, "retain"); err != nil {
		return res, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range slices.Clone(t.order) {
		if r.Status == Published && time.Since(r.PublishedAt) > keep && res.Rows < int64(batch) {
			delete(t.rows, r.ID)
			t.order = slices.DeleteFunc(t.order, func(x *Row) bool { return x == r })
			res.Rows++
		}
	}
	return res, t.leave("retain")
}

// fence is a time that no other claim has.
func (db *DB) fence() (outbox.Fence, time.Time) {
	db.claims++
	at := time.Now().Add(time.Duration(db.claims))
	return outbox.Fence(at.Format(time.RFC3339Nano)), at
}

func parse(s string) time.Time {
	if s == "infinity" {
		return time.Now().AddDate(100, 0, 0)
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}
