package slot

import (
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// Start is where replication begins, and a sentence for the log that says why there.
type Start struct {
	At   event.LSN
	Note string
}

// Judge answers where to start, or which gap it sees. marker is the source's
// marker as this server has it (nil: none); a process that goes on after losing
// its connection may hand in the later position that it remembers itself, but
// only while system and timeline are those of its marker.
//
// The invariants, checked by a test over random input:
//
//	At ≤ FlushLSN                          Postgres accepts more, and stays silent until the log gets there
//	At ≤ max(slot.Confirmed, marker.Confirmed)   nothing that was not confirmed is passed over
//	At ≥ slot.Confirmed                    the server cannot start earlier anyway
func Judge(marker *Marker, f Facts) (Start, error) {
	s := f.Slot
	if marker == nil {
		return judgeFirst(f)
	}
	if marker.SystemID != f.SystemID {
		return Start{}, gap(AnchorOtherCluster,
			fmt.Sprintf("this is another cluster: the marker was written on system %s, the server is system %s, and positions of one mean nothing in the other", marker.SystemID, f.SystemID),
			"if the address is wrong, correct it; after a dump and restore, "+remedyNewSlot)
	}
	if !s.Exists {
		anchor, why := AnchorSlotLost, "somebody dropped it"
		if marker.Timeline != f.Timeline {
			anchor, why = AnchorPromoted, fmt.Sprintf("the server was promoted from timeline %d to %d and did not have it", marker.Timeline, f.Timeline)
		}
		return Start{}, gap(anchor, fmt.Sprintf("slot %s is gone (%s); everything after %s that was not published is missing from the log", s.Name, why, marker.Confirmed), remedyNewSlot)
	}
	if e := invalidated(s, marker.Confirmed); e != nil {
		return Start{}, e
	}
	if marker.Timeline != f.Timeline {
		return judgePromoted(marker, f)
	}
	if marker.Confirmed > f.FlushLSN || s.Confirmed > f.FlushLSN {
		return Start{}, wentBack(max(marker.Confirmed, s.Confirmed), f)
	}
	switch {
	case s.Confirmed <= marker.Confirmed && marker.Slot == s.Name:
		return Start{At: marker.Confirmed, Note: fmt.Sprintf("going on at the marker; the slot says %s", s.Confirmed)}, nil
	case s.Confirmed <= marker.Confirmed:
		// The marker is another slot's. Should it be another relay's too, its position
		// says nothing of what this one has published: repeat rather than skip.
		return Start{At: s.Confirmed, Note: fmt.Sprintf("going on at slot %s; the marker was written for slot %s, at %s", s.Name, marker.Slot, marker.Confirmed)}, nil
	case confirmedByShutdown(s.Confirmed, f):
		return Start{At: s.Confirmed, Note: fmt.Sprintf("going on at the slot, which the server's shutdown advanced from %s", marker.Confirmed)}, nil
	}
	return Start{}, gap(AnchorSlotAdvanced,
		fmt.Sprintf("slot %s was advanced or made anew by someone else: it begins at %s, but nothing after %s was confirmed by walrelay", s.Name, s.Confirmed, marker.Confirmed),
		remedyNewSlot+"; if you moved the slot on purpose, say so with 'walrelay position set --to-slot'")
}

// remedyNewSlot leads back from every gap.
const remedyNewSlot = "where rows are marked, set on_gap: catch_up and start again: what is pending in the table is published first; otherwise compare the outbox rows that were committed since with the topics and publish what is missing, then begin anew with 'walrelay init --new-slot'"

func judgeFirst(f Facts) (Start, error) {
	s := f.Slot
	if !s.Exists {
		return Start{}, precondition(AnchorNotInitialised, fmt.Sprintf("slot %s is not there, and walrelay has never streamed from here", s.Name), "run 'walrelay init'")
	}
	if e := invalidated(s, s.Confirmed); e != nil {
		return Start{}, e
	}
	if s.Confirmed > f.FlushLSN {
		return Start{}, wentBack(s.Confirmed, f)
	}
	return Start{At: s.Confirmed, Note: "first start: going on where the slot begins"}, nil
}

// judgePromoted: a slot that does not begin after the marker was there before the
// promotion, because the marker itself came over with the log. So nothing is
// missing; what the old primary confirmed last may come again.
func judgePromoted(marker *Marker, f Facts) (Start, error) {
	s := f.Slot
	if s.Confirmed > marker.Confirmed {
		return Start{}, gap(AnchorPromoted,
			fmt.Sprintf("the server was promoted from timeline %d to %d, and slot %s begins at %s, after the last confirmed position %s", marker.Timeline, f.Timeline, s.Name, s.Confirmed, marker.Confirmed),
			remedyNewSlot)
	}
	if s.Confirmed > f.FlushLSN {
		return Start{}, wentBack(s.Confirmed, f)
	}
	return Start{At: s.Confirmed, Note: fmt.Sprintf("timeline %d became %d with slot %s carried over; going on at the slot, the marker says %s", marker.Timeline, f.Timeline, s.Name, marker.Confirmed)}, nil
}

func wentBack(at event.LSN, f Facts) error {
	return gap(AnchorLogWentBack,
		fmt.Sprintf("the remembered position %s lies beyond the end of the server's log, %s: the server was restored to an earlier state", at, f.FlushLSN),
		remedyNewSlot)
}

func invalidated(s SlotFacts, confirmed event.LSN) error {
	if s.Invalidation == "" && s.WALStatus != "lost" {
		return nil
	}
	return gap(AnchorSlotInvalid,
		fmt.Sprintf("slot %s was invalidated by the server (wal_status %s, reason %s); the last confirmed position is %s", s.Name, s.WALStatus, s.Invalidation, confirmed),
		remedyNewSlot+"; see max_slot_wal_keep_size")
}

// longPageHeader is the most that page headers put between the end of one record
// and the start of the next (SizeOfXLogLongPHD).
const longPageHeader = 40

// confirmedByShutdown recognises the one advance that no marker precedes: a
// walsender that is told to stop waits until its client confirms the end of the
// log, when the database takes no writes any more. What follows in the log is
// the record of the shutdown checkpoint, after a switch of segments where WAL is
// archived. Postgres 17 and later keep that position over the restart; the proof
// lasts until the next checkpoint.
func confirmedByShutdown(confirmed event.LSN, f Facts) bool {
	cp := f.ShutdownCheckpoint
	if cp == 0 || confirmed > cp {
		return false
	}
	if cp.Sub(confirmed) <= longPageHeader {
		return true
	}
	seg := uint64(f.SegmentBytes)
	return seg > 0 && uint64(cp)%seg == longPageHeader && uint64(cp)/seg == uint64(confirmed)/seg+1
}
