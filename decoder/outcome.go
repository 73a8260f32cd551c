package decoder

// Outcome is what becomes of a row or a logical message.
type Outcome uint8

// The outcomes.
const (
	// Refused comes with an error and only with one.
	Refused Outcome = iota
	// Publish: the event is complete.
	Publish
	// Deferred: pending, but not due yet when its transaction committed. It stays in
	// the table and is the sweep's.
	Deferred
	// IgnoredRelation: the row's relation is no outbox table of ours.
	IgnoredRelation
	// IgnoredStatus: inserted in another state than pending.
	IgnoredStatus
	// IgnoredPublished: inserted with its time of publishing set.
	IgnoredPublished
	// IgnoredPrefix: the message's prefix is not one of ours.
	IgnoredPrefix
	// IgnoredNonTransactional: the message stands outside of any transaction.
	IgnoredNonTransactional
	// NumOutcomes is for counters indexed by outcome.
	NumOutcomes
)

var outcomeNames = [NumOutcomes]string{
	"refused", "publish", "deferred", "foreign_relation", "status", "published", "foreign_prefix", "non_transactional",
}

// Ignored reports whether nothing is to be done, now or later.
func (o Outcome) Ignored() bool { return o >= IgnoredRelation }

// String is a word for logs and labels; for an ignored row it is the reason.
func (o Outcome) String() string {
	if o < NumOutcomes {
		return outcomeNames[o]
	}
	return "unknown outcome"
}
