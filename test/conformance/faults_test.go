package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/relay"
)

// faults are what is wrong in [TestEachPromiseFailsOnABackendThatBreaksIt]: for each test the
// smallest thing that breaks its promise.
var faults = map[string]fault{
	"TestClaimTakesRowsInTableOrderAndWritesOnlyTheClaim": {table: func(t badTable) badTable {
		t.claimed = func(c *outbox.Claim) { slices.Reverse(c.Rows) }
		return t
	}},
	"TestClaimedEventIsWhatWasWritten": {table: func(t badTable) badTable {
		t.claimed = func(c *outbox.Claim) { c.Rows[0].Event.Fields[event.Type] = nil }
		return t
	}},
	"TestEveryRowIsInExactlyOneShard": {table: func(t badTable) badTable {
		t.request = func(r *outbox.Request) {
			if slices.Equal(r.Shards.Own, []int{3}) {
				r.Shards.Own = []int{3, 4}
			}
		}
		return t
	}},
	"TestHeldKeysArePassedOverExceptTheirHeadsAndLooseRoutes": {table: func(t badTable) badTable {
		t.request = func(r *outbox.Request) { r.Loose = nil }
		return t
	}},
	"TestWhoseTurnItIsIsTakenInTableOrderWhateverTheirDueTimes": {table: func(t badTable) badTable {
		t.request = func(r *outbox.Request) { r.Heads = r.Heads[len(r.Heads)-r.Limit%7:] }
		return t
	}},
	"TestRowsWithoutAKeyAreHeldByTheirEventIDs": {table: func(t badTable) badTable {
		t.request = func(r *outbox.Request) { r.Held = []string{""} }
		return t
	}},
	"TestAClaimOfCertainRowsTakesThoseThatArePendingAndDue": {table: func(t badTable) badTable {
		t.request = func(r *outbox.Request) {
			if len(r.Only) == 0 {
				r.Only = nil
			}
		}
		return t
	}},
	"TestALeaseWritesNothingAndItsOutcomesAreGuardedByTheState": {table: func(t badTable) badTable {
		t.lost = func([]int) []int { return nil }
		return t
	}},
	"TestClaimersBesideEachOtherTakeEachRowOnce": {table: func(t badTable) badTable {
		t.claimed = func(c *outbox.Claim) {
			if len(c.Rows) > 0 {
				c.Rows = append(c.Rows, c.Rows[len(c.Rows)-1])
			}
		}
		return t
	}},
	"TestASnapshotLeavesOutWhatWaits": {table: func(t badTable) badTable {
		t.request = func(r *outbox.Request) { r.Held = nil }
		return t
	}},
	"TestSettleWritesEachTransition": {table: func(t badTable) badTable {
		t.outcome = func(o *outbox.Outcome) { o.Delay /= 2 }
		return t
	}},
	"TestPublishedRowsAreDeletedWhereThatIsTheWay": {options: func(o *options) { o.after = "mark" }},
	"TestARowToBeTriedAgainIsClaimedOnceItIsDue": {table: func(t badTable) badTable {
		t.outcome = func(o *outbox.Outcome) { o.Delay = 0 }
		return t
	}},
	"TestRenewSaysWhatIsStillHeldAndPutsOffItsReclaim": {table: func(t badTable) badTable {
		t.held = func(asked, _ []string) []string { return asked }
		return t
	}},
	"TestStaleClaimsAreGivenBackOnceAndTheirOldOutcomesAreLost": {table: func(t badTable) badTable {
		t.reclaim = func(r *outbox.Reclaim) { r.Except = nil }
		return t
	}},
	"TestAClaimIsFoundByWhenItWasMade": {table: func(t badTable) badTable {
		t.reclaim = func(r *outbox.Reclaim) { r.Tenures = r.Tenures[:1] }
		return t
	}},
	"TestRequeueClearsWhatFailedRowsHad": {table: func(t badTable) badTable {
		t.requeue = func(asked, _ int) int { return asked }
		return t
	}},
	"TestUnfinishedRowsAreThoseTriedAndThoseInHand": {table: func(t badTable) badTable {
		t.more = func(bool) bool { return false }
		return t
	}},
	"TestPublishedRowsAreReadAgainOldestFirst": {table: func(t badTable) badTable {
		t.filter = func(f *outbox.Filter) { f.After = "" }
		return t
	}},
	"TestMarkWritesPendingAndForeignRowsAndLeavesTheOthersAlone": {table: func(t badTable) badTable {
		t.marked = func(m *outbox.Marked) { m.Pending, m.Foreign = m.Pending+m.Foreign, 0 }
		return t
	}},
	"TestMarkDeletesWhereThatIsTheWayAndKeepsWhatFailed": {table: func(t badTable) badTable {
		t.mark = func(m *outbox.Mark) { m.Error = "" }
		return t
	}},
	"TestLookUpNamesWhatIsThereAndNotPending": {table: func(t badTable) badTable {
		t.lookUp = func(asked []string, done map[string]bool) { done[asked[8]] = true }
		return t
	}},
	"TestMarksInAnyOrderMeetWithoutHarm": {table: func(t badTable) badTable {
		t.marked = func(m *outbox.Marked) { m.Pending += m.Settled }
		return t
	}},
	"TestFiguresCountByStateAndKnowTheOldest": {table: func(t badTable) badTable {
		t.figures = func(f *outbox.Figures) { f.Retrying = 0 }
		return t
	}},
	"TestRetainDeletesOnlyOldPublishedRows": {table: func(t badTable) badTable {
		t.keep = func(d time.Duration) time.Duration { return min(d, time.Nanosecond) }
		return t
	}},

	"TestMembersShareWhatIsFreeAndGiveBackOnRequest": {leases: func(l outbox.Leases) outbox.Leases {
		return badLeases{Leases: l, answer: func(s *outbox.LeaseState) { s.Rank = 0 }}
	}},
	"TestWhatIsGivenBackAndWantedIsNotTakenInOneBreath": {leases: func(l outbox.Leases) outbox.Leases {
		return badLeases{Leases: l, request: func(r *outbox.LeaseRequest) { r.GiveBack = nil }}
	}},
	"TestAnExpiredShardComesWithItsTenure": {leases: func(l outbox.Leases) outbox.Leases {
		return badLeases{Leases: l, answer: func(s *outbox.LeaseState) { s.Tenures = nil }}
	}},
	"TestWhoWantsAllTakesNoneWithoutTheFirst": {leases: func(l outbox.Leases) outbox.Leases {
		return badLeases{Leases: l, request: func(r *outbox.LeaseRequest) { r.All = false }}
	}},
	"TestAnotherCutIsWaitedFor": {leases: func(l outbox.Leases) outbox.Leases {
		return badLeases{Leases: l, answer: func(s *outbox.LeaseState) { s.Others = nil }}
	}},
	"TestTwoSourcesAndManyMembersNeverShareAShard": {leases: func(l outbox.Leases) outbox.Leases {
		return badLeases{Leases: l, answer: func(s *outbox.LeaseState) {
			if len(s.Own) > 0 {
				s.Own[0] = 0
			}
		}}
	}},

	"TestParkedRowFailsWithItsReasonAndComesBackWhenTold": {parking: func(k parking) parking {
		return badParking{parking: k, retry: func(int) int { return 1 }}
	}},
	"TestHeldKeysOutliveTheProcess": {parking: func(k parking) parking {
		parked := false
		return badParking{parking: k, park: func(*outbox.Parked) { parked = true }, held: func(h []outbox.HeldKey) []outbox.HeldKey {
			if !parked {
				return nil
			}
			return h
		}}
	}},
	"TestDroppedEventDoesNotComeBackAlthoughItWasToldToGo": {parking: func(k parking) parking {
		return badParking{parking: k, drop: func(ctx context.Context, k parking, ids []int64) (int, error) { return len(ids), k.Done(ctx, ids) }}
	}},
	"TestEntriesFollowTheirRows": {parking: func(k parking) parking {
		var first []outbox.HeldKey
		return badParking{parking: k, held: func(h []outbox.HeldKey) []outbox.HeldKey {
			if first == nil {
				first = h
			}
			return first
		}}
	}},
	"TestAnotherOwnersEntriesAreNotSeen":                     {options: func(o *options) { o.owner = "" }},
	"TestParkedEventsAreCountedByStateAndForThisSourceAlone": {options: func(o *options) { o.owner = "" }},
	"TestAListIsNarrowedAndPaged": {parking: func(k parking) parking {
		return badParking{parking: k, filter: func(f *outbox.ParkedFilter) { f.After = 0 }}
	}},
	"TestThoseWhoParkAtOnceLoseNothing": {parking: func(k parking) parking {
		return badParking{parking: k, park: func(p *outbox.Parked) { p.EventID = "e" }}
	}},
	"TestEventKeptWholeComesBackByteForByte": {parking: func(k parking) parking {
		return badParking{parking: k, shown: func(p *outbox.Parked) {
			if p.Record.Value == nil {
				p.Record.Value = []byte{}
			}
		}}
	}},
	"TestWholeEventsComeBackInTheirOrderWhenNothingParkedHoldsThem": {parking: func(k parking) parking {
		return badParking{parking: k, whole: func(list []outbox.Parked) {
			slices.SortFunc(list, func(a, b outbox.Parked) int { return int(a.ID - b.ID) })
		}}
	}},
	"TestRowThatIsGoneIsKeptWhole": {parking: func(k parking) parking {
		return badParking{parking: k, shown: func(p *outbox.Parked) { p.Record.Origin.Row = nil }}
	}},
	"TestRowBehindAnEventThatIsKeptWholeIsKeptWholeToo": {parking: func(k parking) parking {
		return badParking{parking: k, leave: func(p *outbox.Parked) bool { return p.EventID == "e3" }}
	}},
	"TestKeptAreTheEventsOfTheLogThatHaveNoRow": {parking: func(k parking) parking {
		return badParking{parking: k, kept: func(ctx context.Context, k parking) ([]outbox.Parked, error) {
			return k.List(ctx, outbox.ParkedFilter{})
		}}
	}},
	"TestRowsAreNotWrittenToWhereNothingIsMarked": {options: func(o *options) { o.after = "mark" }},
	"TestEventThatWasRefusedHalfMadeIsNotLetGo": {parking: func(k parking) parking {
		return badParking{parking: k, park: func(p *outbox.Parked) { p.Record.Partial = false }}
	}},
	"TestBudgetOfWholeEventsEndsInAHaltWithARemedy": {options: func(o *options) { o.budget = 4 }},

	"TestCommittedEventsComeWholeInTheOrderOfCommits": {source: spoilt(func(b *event.Batch) {
		if n := len(b.Events); n > 1 {
			b.Events[0].Fields, b.Events[n-1].Fields = b.Events[n-1].Fields, b.Events[0].Fields
		}
	})},
	"TestConfirmedEventsDoNotComeAgainAndTheOthersDo": {source: func(s relay.Source) relay.Source {
		return &badSource{Source: s, confirm: func(event.Position) bool { return false }}
	}},
	"TestFinishEndsAtATransactionsEnd": {source: ends},
	"TestFinishOfAnIdleSourceEndsIt": {source: func(s relay.Source) relay.Source {
		return &badSource{Source: s, finish: func() {}}
	}},
	"TestBytesStayUntilTheirMemoryIsReleased": {source: func(s relay.Source) relay.Source {
		var room []byte // is used again for each batch
		return spoilt(func(b *event.Batch) {
			at := 0
			for i := range b.Events {
				for f, v := range b.Events[i].Fields {
					if at+len(v) > len(room) {
						room = append(room, make([]byte, 1<<20)...)
					}
					copy(room[at:], v)
					b.Events[i].Fields[f] = room[at : at+len(v)]
					at += len(v)
				}
			}
		})(s)
	}},
	"TestPositionOfAnIdleOutboxMovesOn": {source: func(s relay.Source) relay.Source {
		var at event.Position // where it stays, once an event has come
		came := false
		return spoilt(func(b *event.Batch) {
			for i := range b.Spans {
				span := &b.Spans[i]
				came = came || span.Events > 0
				if came && span.Done && at.IsZero() {
					at = span.End
				}
				if !at.IsZero() {
					span.End = at
				}
			}
		})(s)
	}},
	"TestLostConnectionIsTheSourcesOwnBusiness": {source: spoilt(func(b *event.Batch) {
		if n := len(b.Events); n > 1 {
			b.Events[n-1].Fields = b.Events[n-2].Fields
		}
	})},
	"TestNextKeepsToItsContextAndGoesOnAfterwards": {source: func(s relay.Source) relay.Source {
		var end error
		return &badSource{Source: s, next: func(ctx context.Context, s relay.Source) (*event.Batch, error) {
			if end != nil {
				return nil, end
			}
			b, err := s.Next(ctx)
			end = err
			return b, err
		}}
	}},
}
