package oracle

// Commit is one event that was committed in the source.
type Commit struct {
	EventID string
	Route   string
	// Key is the ordering key; empty means that no order was promised.
	Key string
	// Seq orders the events of one key: the order of commits, and inside one
	// transaction the order of writing. Gaps are what was rolled back.
	Seq int64
	// Value is what the record's value has to be, byte for byte; nil when unknown.
	Value []byte
}
