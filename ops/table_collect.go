package ops

var gears = []string{"log", "poll", "catch_up", "deciding"}

func (s *Source) collectTable(e emitter) {
	t := &s.table
	if gear, _ := s.gear(); gear != "" {
		e.oneHot(metricGear, gears, gear, s.name)
	}
	e.put(metricSourceWarn, float64(len(s.standing())), s.name)
	if b, known := s.backlog(); known {
		e.put(metricOutboxLag, b.OldestPending.Seconds(), s.name)
		e.put(metricOutboxRows, float64(b.Pending), s.name, "pending")
		e.put(metricOutboxRows, float64(b.Retrying), s.name, "retrying")
		e.put(metricOutboxRows, float64(b.Processing), s.name, "processing")
		e.put(metricOutboxRows, float64(b.Failed), s.name, "failed")
		e.put(metricDeadTuples, float64(b.DeadTuples), s.name)
	}
	e.coarse(metricClaimTime, &t.claims, s.name)
	e.count(metricClaimed, &t.claimed, s.name)
	e.count(metricLostClaims, &t.lostClaims, s.name)
	e.count(metricRowRetries, &t.retries, s.name)
	e.count(metricGivenUp, &t.given, s.name)
	e.count(metricReclaimed, &t.reclaimed, s.name)
	e.coarse(metricMarkTime, &t.marks, s.name)
	e.count(metricMarks, &t.markedPending, s.name, "pending")
	e.count(metricMarks, &t.markedForeign, s.name, "foreign")
	e.count(metricMarks, &t.markedSettled, s.name, "settled")
	e.count(metricMarks, &t.markedAbsent, s.name, "absent")
	e.count(metricSkipped, &t.skipped, s.name)
	e.count(metricHeldKeys, &t.heldKeys, s.name)
	if t.parkedKnown.Load() {
		e.count(metricParked, &t.parked, s.name, "parked")
		e.count(metricParked, &t.behind, s.name, "behind")
		e.count(metricParked, &t.retrying, s.name, "retrying")
	}
	if t.shardsKnown.Load() {
		e.count(metricShards, &t.shardsOwn, s.name)
		e.count(metricMembers, &t.members, s.name)
	}
	e.count(metricLostShards, &t.lostShards, s.name)
	if t.retains.Load() {
		e.count(metricRetained, &t.retainedRows, s.name)
		e.count(metricPartDropped, &t.retainedPartitions, s.name)
	}
}
