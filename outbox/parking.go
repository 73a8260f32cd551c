package outbox

import (
	"context"
	"time"

	"github.com/walrelay/walrelay/event"
)

// Parking keeps events that wait for a human, and the keys that they hold, over
// restarts. One per source.
type Parking interface {
	// Park puts one event aside, durably, when it returns nil. A row becomes failed with
	// the reason in the same transaction, whatever its state was before; where the
	// row is not there, or the table has no such state, the event goes whole into the
	// store. Parking the same event again changes nothing.
	//
	// Where p.Row names a row and p.Xid is not visible yet, the answer is a Retry error.
	Park(ctx context.Context, p Parked) error

	// LeaveBehind is Park for an event whose key is held by another one: a row that is there
	// and pending stays as it is, for the table reader to find; else the event goes whole
	// into the store, behind the others of its key. Once the store keeps one behind the
	// key, later ones are kept whole too and their rows are settled, so that
	//
	//	rows of the key that are there  <  events kept whole behind it
	//
	// Beyond the store's budget the answer is a Halt with a remedy.
	LeaveBehind(ctx context.Context, p Parked) error

	// Held lists the held keys, with what holds each. It also cleans up: an entry whose
	// row was published, deleted, or requeued by somebody else changes accordingly.
	Held(ctx context.Context) ([]HeldKey, error)

	// Whole gives the events that are kept whole and wait to be published again, in
	// their order: those told to retry, and those left behind keys that nothing parked
	// holds any more.
	Whole(ctx context.Context, limit int) ([]Parked, error)

	// Kept lists, without their records, all events that the log brought and that are kept
	// whole. A log that is read again from before them brings them again.
	Kept(ctx context.Context) ([]Parked, error)

	// Done forgets entries: their events are published.
	Done(ctx context.Context, ids []int64) error

	// List, Show, Retry and Drop are for the operator. Retry lets the event go again; Drop
	// gives it up: its key is free once nothing else holds it, and a row stays failed.
	List(ctx context.Context, f ParkedFilter) ([]Parked, error)
	Show(ctx context.Context, id int64) (*Parked, error)
	Retry(ctx context.Context, ids []int64) (int, error)
	Drop(ctx context.Context, ids []int64) (int, error)
}

// ParkState says what a parked event waits for.
type ParkState string

// The states.
const (
	StateParked   ParkState = "parked"   // a human
	StateBehind   ParkState = "behind"   // an earlier event of its key
	StateRetrying ParkState = "retrying" // told to go again, not published yet
)

// Parked is one event put aside.
type Parked struct {
	ID    int64 // the store's, ascending in the order of parking
	State ParkState
	// Relation and Row name the row; Row is empty for an event without one.
	Relation, Row string
	Xid           uint32
	EventID       string
	Route         string
	Key           string // the effective key; empty: it holds nothing back
	Topic         string
	Commit        event.Position
	Ordinal       uint32
	Reason        string // of few words: too_large, refused, attempts, …
	Error         string
	// Whole: the event is kept in the store, there is no row to publish it from. Partial: it
	// was refused before its record was complete, so that it cannot be let go as it is.
	Whole, Partial bool
	// Record is the event as it was routed, for one that is kept whole; nil otherwise, and in lists.
	Record   *event.Record
	ParkedAt time.Time
}

// HeldKey is a key whose later events wait.
type HeldKey struct {
	Key string
	// Parked: something waits for a human. Otherwise all that holds it is on its way again.
	Parked bool
	// Behind: all that holds it are events kept whole behind others that are gone. Rows of the
	// key go before them.
	Behind bool
	// Heads are the rows that may go: those told to retry.
	Heads []string
}

// ParkedFilter narrows a list; zero values do not.
type ParkedFilter struct {
	Key, Route, EventID string
	State               ParkState
	After               int64 // the last id of the previous page
	Limit               int   // 0: 100
}
