package outbox

import "time"

// remark is what the desk noted about a row before its result came.
type remark uint8

const (
	unremarked remark = iota
	asideParked
	asideBehind   // an earlier row of its key failed
	asideReturned // its topic is missing
	asideLettered // a dead letter took its place
)

// entry is one row, or one event that was kept whole, from its claim until its outcome is written.
type entry struct {
	id, key string // key is empty where it holds nothing back
	event   []byte // its id
	route   string
	state   *keyState // of its key, while it is under way; nil where it holds nothing back, or is kept whole
	table   int       // below zero: kept whole
	whole   *Parked

	fence    Fence
	claimed  time.Time // or renewed, by our clock
	version  uint64    // of the lease view that it was claimed under
	attempts int

	remark remark
	why    string  // asideLettered: the error
	aside  *Parked // asideReturned: what to park, should it be given up

	verdict verdict
	outcome Outcome       // without its fence
	delay   time.Duration // until the next attempt, where it is known here alone
	lost    bool          // its claim went to somebody else
}

// verdict is what becomes of an entry; more than [Verdict], because not every row
// that came back owes an outcome.
type verdict uint8

const (
	nothingOwed verdict = iota // its state was written already
	owed                       // outcome
	giveUp                     // to be parked, then as the table needs it
	forget                     // a whole event: published
	keep                       // a whole event: stays in the store
)

// verdictAtClose: an entry without a result was never published.
func (e *entry) verdictAtClose() verdict {
	switch {
	case e.whole != nil:
		return keep
	case e.remark == asideParked:
		return nothingOwed
	}
	e.outcome = Outcome{ID: e.id, Verdict: Released}
	return owed
}

func (e *entry) eventID() string {
	if e.whole != nil {
		return e.whole.EventID
	}
	return string(e.event)
}

// name is what attempts are counted under where the table cannot count.
func (e *entry) name() string {
	if e.whole != nil {
		return "whole/" + GateID(e.whole.Row, e.whole.EventID)
	}
	return e.id
}

func (e *entry) gateID() string {
	if e.whole != nil {
		return GateID(e.whole.Row, e.whole.EventID)
	}
	return e.id
}
