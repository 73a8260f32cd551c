package outbox

import (
	"context"
	"time"

	"github.com/walrelay/walrelay/event"
)

// Table is one outbox relation. The implementation knows its schema preset, what
// to do after publishing (mark or delete) and how rows are claimed; callers
// speak of ids and outcomes.
//
// Ids are the text form of the row's primary key, exactly as the row was read.
//
// Every method is one short transaction, read committed whatever the database's
// default is, without session state (a pooler may stand between), with ids
// locked in one order. A method may be called by several goroutines. Errors answer
// their class: Retry for what passes (connection, deadlock, serialization,
// lock timeout): the caller repeats the same call; Halt with a remedy for what does not.
type Table interface {
	// Relation names the table for people: schema.table. It is what Event.Relation
	// says for events of it.
	Relation() string

	// Traits say what rows of this table can carry.
	Traits() Traits

	// Mark writes the outcome of events that the log brought. There was no claim: the
	// guard is the state. Rows that are pending, or that a foreign poller has in
	// processing, become what the mark says; all others are left alone.
	Mark(ctx context.Context, marks []Mark) (Marked, error)

	// LookUp answers which of the ids are there and not pending any more: published,
	// failed, or claimed. Those that are absent are not in the answer.
	LookUp(ctx context.Context, ids []string) (map[string]bool, error)

	// Claim takes rows, in table order. An empty claim has no rows and is no error.
	// Where claims write no state (claim: lease, and presets without states) the same
	// row is given again unless req.Except names it.
	Claim(ctx context.Context, req Request) (*Claim, error)

	// Settle writes outcomes of claimed rows, each guarded by the fence of its claim.
	// lost are the indexes of those whose claim was lost meanwhile: the guard hit nothing.
	Settle(ctx context.Context, outcomes []Outcome) (lost []int, err error)

	// Renew tells the database that rows are still being worked at, under a new
	// fence. Rows that are not in held were lost.
	Renew(ctx context.Context, fence Fence, ids []string) (renewed Fence, held []string, err error)

	// Reclaim gives stale claims back: rows in processing become pending with
	// attempts+1, due now. It answers how many.
	Reclaim(ctx context.Context, req Reclaim) (int, error)

	// Unfinished lists rows that hold their key: tried and waiting for their next
	// attempt, or in processing by somebody. In table order, at most limit; more
	// says that there were more.
	Unfinished(ctx context.Context, shards Shards, limit int) (rows []Unfinished, more bool, err error)

	// Pending takes a snapshot of rows that are pending and due, in table order, those that
	// a claim would take (req.Only and req.Except do not matter), and then reads the end of
	// the log: whatever the log brings of them, it brings at or below at.
	Pending(ctx context.Context, req Request) (ids []string, at event.Position, err error)

	// Owed calls each with the id of every row that is neither published nor given up, due or
	// not, in no order.
	Owed(ctx context.Context, each func(id string)) error

	// Requeue makes failed rows pending again: attempts 0, no error, due now.
	Requeue(ctx context.Context, ids []string) (int, error)

	// Read gives rows again that were published, oldest first, and changes nothing.
	Read(ctx context.Context, f Filter) (*Claim, error)

	// Figures reads the table's gauges without a scan of the table.
	Figures(ctx context.Context) (Figures, error)

	// Retain deletes published rows that are older than keep, at most batch; where
	// the table is partitioned by time it drops whole partitions instead, once every row
	// in them is published and older.
	Retain(ctx context.Context, keep time.Duration, batch int) (Retained, error)
}

// Traits of a table.
type Traits struct {
	// States: rows carry pending and published (and are marked or deleted after
	// publishing), so that a row left alone is found again.
	States bool
	// Retries: rows carry attempts, a due time and an error; a failed row stays, failed.
	Retries bool
	// Claims: a claim writes processing into the row (or locks it), safe beside foreign pollers.
	// Otherwise the lease of the shard is the claim.
	Claims bool
}

// Mark is the outcome of one event that the log brought.
type Mark struct {
	ID string
	// Xid is the transaction that wrote the row, as the log names it; zero if unknown.
	// Until it is visible, a mark that hits nothing proves nothing.
	Xid uint32
	// Error, when set, is why the event did not get to its topic (it was dead-lettered):
	// the row becomes failed with that error, where rows have such a state; else as published.
	Error string
}

// Marked counts what became of marks. Their sum, with len(Unseen), is the number of marks.
type Marked struct {
	Pending int // rows that were pending: as it should be
	Foreign int // rows that a foreign poller had claimed
	Settled int // rows in a final state already: somebody else published or failed them
	Absent  int // no such row: inserted and deleted in one transaction, or deleted since
	// Unseen are the indexes of marks whose transaction is not visible yet: call again with them.
	Unseen []int
}

// Shards are parts of the key space. A row's shard is a hash of its key modulo Of.
type Shards struct {
	// Of is the number of all shards; zero: the key space is not cut.
	Of int
	// Own are those asked for, ascending; meaningless when Of is zero.
	Own []int
	// Holder is who holds them under leases; empty: nobody does. A claim takes nothing once
	// one of them is not his, and whatever looks at rows for him comes after his claims, also after one
	// that nobody waits for any more.
	Holder string
}

// Request says which rows to claim.
type Request struct {
	Limit  int
	Shards Shards
	// Held keys are passed over, on routes that hold back.
	Held []string
	// Heads are rows of held keys that may be claimed all the same, when due.
	Heads []string
	// Loose are the routes that do not hold back.
	Loose []string
	// Only, when not nil, restricts the claim to these ids.
	Only []string
	// Except are ids that are under way already.
	Except []string
	// Room is memory that the rows may be put into; nil: none. Nobody uses it otherwise.
	Room []Row
}

// Fence is what guards the outcome of a claim: the exact processing_at that it
// wrote, or a name for the open transaction. Empty where claims write nothing.
type Fence string

// Claim is a batch of claimed rows. Rows' bytes are owned by the garbage
// collector: they are valid as long as somebody points at them.
type Claim struct {
	Fence Fence
	Rows  []Row
}

// Row is one claimed row. Its Event has no commit position (a table has none);
// CommitMicros is the time the row was made, where the table knows it.
type Row struct {
	Event event.Event
	ID    string
	// Key is the effective key: the key column, or the event id where that is null or empty.
	Key      string
	Route    string
	Attempts int
}

// Verdict is what became of a claimed row.
type Verdict uint8

// The verdicts.
const (
	// Published: marked, or deleted.
	Published Verdict = iota
	// Retry: pending again, with Attempts and Error, due after Delay.
	Retry
	// Failed: given up, with Error; attempts stay as they are.
	Failed
	// Released: pending as before the claim; nothing was tried.
	Released
)

func (v Verdict) String() string {
	return [...]string{"published", "retry", "failed", "released"}[v]
}

// Outcome is the verdict on one row.
type Outcome struct {
	ID       string
	Fence    Fence
	Verdict  Verdict
	Attempts int           // Retry
	Delay    time.Duration // Retry: from now, by the database's clock
	Error    string        // Retry and Failed
}

// Reclaim says which claims are stale: those older than OlderThan, and those
// made within one of the Tenures, whose holders are gone.
type Reclaim struct {
	Shards    Shards
	OlderThan time.Duration
	Tenures   []Tenure
	// Except are ids that are under way here.
	Except []string
	Limit  int
}

// Tenure is the time during which somebody who is gone held a shard, by the
// database's clock, as it prints it.
type Tenure struct {
	Shard       int
	From, Until string
}

// Unfinished is a row that holds its key.
type Unfinished struct {
	ID, Key, Route string
	// Processing: somebody has it. Otherwise it waits for its next attempt.
	Processing bool
	// Due says that its next attempt may be made now.
	Due bool
}

// Filter says which published rows to read again.
type Filter struct {
	EventID string
	Route   string
	// Since and Until bound the time of publishing, as Postgres reads a timestamp; empty: no bound.
	Since, Until string
	Limit        int
	// After is the last id of the previous page; empty for the first.
	After string
}

// Figures are gauges of one table.
type Figures struct {
	// OldestPending is the age of the oldest row that is not published; zero: none.
	OldestPending time.Duration
	// Counts of rows, exact up to CountLimit and that value where there are more.
	Pending, Retrying, Processing, Failed int64
	// DeadTuples is the server's estimate.
	DeadTuples int64
}

// CountLimit is where counting stops: a gauge must not scan the table.
const CountLimit = 100_000

// Retained is what retention removed.
type Retained struct {
	Rows       int64
	Partitions []string
}
