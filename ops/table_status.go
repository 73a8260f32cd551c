package ops

// TableStatus is what is known of a source's outbox tables. Counts are since the
// start of the process, unless they are of rows.
type TableStatus struct {
	// Gear is log, poll, catch_up or deciding; Why says what led there, if that is
	// not what one would expect.
	Gear string `json:"gear"`
	Why  string `json:"why,omitempty"`
	// Outbox is absent until the tables were looked at.
	Outbox *OutboxStatus `json:"outbox,omitempty"`
	// Parked is absent where nothing can be parked.
	Parked   *ParkedStatus `json:"parked,omitempty"`
	HeldKeys int64         `json:"held_keys"`
	// Shards is absent where none are held.
	Shards    *ShardStatus `json:"shards,omitempty"`
	Claimed   int64        `json:"rows_claimed"`
	Lost      int64        `json:"claims_lost"`
	Retries   int64        `json:"row_retries"`
	GivenUp   int64        `json:"rows_given_up"`
	Reclaimed int64        `json:"rows_reclaimed"`
	Skipped   int64        `json:"events_skipped"`
	Marks     MarkStatus   `json:"marks"`
	// Retention.
	RowsDeleted       int64 `json:"rows_deleted"`
	PartitionsDropped int64 `json:"partitions_dropped"`
}

// OutboxStatus are rows that are not published.
type OutboxStatus struct {
	LagSeconds float64 `json:"lag_seconds"`
	Pending    int64   `json:"pending"`  // retrying among them
	Retrying   int64   `json:"retrying"` // tried before
	Processing int64   `json:"processing"`
	Failed     int64   `json:"failed"`
	// CountLimit: counting stops there; a count of this value means at least so many.
	CountLimit int64 `json:"count_limit,omitempty"`
	DeadTuples int64 `json:"dead_tuples"`
}

// ParkedStatus are events put aside.
type ParkedStatus struct {
	Parked   int64 `json:"parked"`
	Behind   int64 `json:"behind"`
	Retrying int64 `json:"retrying"`
}

// ShardStatus is the share of this process in the key space.
type ShardStatus struct {
	Held    int64 `json:"held"`
	Of      int64 `json:"of"`
	Members int64 `json:"members"`
	Lost    int64 `json:"lost"`
}

// MarkStatus are marks by what they hit.
type MarkStatus struct {
	Pending int64 `json:"pending"`
	Foreign int64 `json:"foreign"`
	Settled int64 `json:"settled"`
	Absent  int64 `json:"absent"`
}

// tableStatus is nil for a source of which nobody reported a gear.
func (s *Source) tableStatus() *TableStatus {
	gear, why := s.gear()
	if gear == "" {
		return nil
	}
	t := &s.table
	st := &TableStatus{
		Gear: gear, Why: s.ops.redact(why), HeldKeys: t.heldKeys.Load(),
		Claimed: t.claimed.Load(), Lost: t.lostClaims.Load(), Retries: t.retries.Load(), GivenUp: t.given.Load(),
		Reclaimed: t.reclaimed.Load(), Skipped: t.skipped.Load(),
		Marks: MarkStatus{
			Pending: t.markedPending.Load(), Foreign: t.markedForeign.Load(), Settled: t.markedSettled.Load(), Absent: t.markedAbsent.Load(),
		},
		RowsDeleted: t.retainedRows.Load(), PartitionsDropped: t.retainedPartitions.Load(),
	}
	if b, known := s.backlog(); known {
		st.Outbox = &OutboxStatus{
			LagSeconds: b.OldestPending.Seconds(), Pending: b.Pending, Retrying: b.Retrying, Processing: b.Processing, Failed: b.Failed,
			CountLimit: b.Limit, DeadTuples: b.DeadTuples,
		}
	}
	if t.parkedKnown.Load() {
		st.Parked = &ParkedStatus{Parked: t.parked.Load(), Behind: t.behind.Load(), Retrying: t.retrying.Load()}
	}
	if t.shardsKnown.Load() {
		st.Shards = &ShardStatus{Held: t.shardsOwn.Load(), Of: t.shardsOf.Load(), Members: t.members.Load(), Lost: t.lostShards.Load()}
	}
	return st
}
