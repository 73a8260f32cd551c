package outboxfake

import (
	"fmt"
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
