package ops

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// judgeSlot says what the slot's report means: reasons why nothing can flow any
// more, and warnings that this may come.
func judgeSlot(r *event.SlotReport) (lost, warnings []event.Condition) {
	if r == nil {
		return nil, nil
	}
	switch {
	case r.Invalidation != "" || r.WALStatus == "lost":
		reason := r.Invalidation
		if reason == "" {
			reason = "WAL was removed"
		}
		lost = append(lost, event.Condition{
			What:   fmt.Sprintf("slot %s is lost: %s", r.Slot, reason),
			Remedy: "compare the outbox with the topics and publish what is missing, then begin anew with 'walrelay init --new-slot'",
			Anchor: AnchorSlotLost,
		})
		return lost, nil
	case r.WALStatus == "unreserved":
		warnings = append(warnings, event.Condition{
			What:   fmt.Sprintf("slot %s is unreserved: it holds %s of WAL and is lost at the next checkpoint unless it advances", r.Slot, bytesText(r.RetainedBytes)),
			Remedy: "find out what holds the relay back, or raise max_slot_wal_keep_size now",
			Anchor: AnchorSlotWAL,
		})
		return nil, warnings
	case r.WALStatus == "extended":
		warnings = append(warnings, event.Condition{
			What:   fmt.Sprintf("slot %s holds %s of WAL, more than max_wal_size", r.Slot, bytesText(r.RetainedBytes)),
			Remedy: "find out what holds the relay back; see which rung of the ladder is behind",
			Anchor: AnchorSlotWAL,
		})
	}
	// safe_wal_size and what is retained add up to the limit, about: a fifth left is little.
	if r.SafeBytes >= 0 && r.SafeBytes < (r.SafeBytes+r.RetainedBytes)/5 {
		warnings = append(warnings, event.Condition{
			What:   fmt.Sprintf("slot %s: only %s of WAL can be written before the slot is in danger (it holds %s)", r.Slot, bytesText(r.SafeBytes), bytesText(r.RetainedBytes)),
			Remedy: "find out what holds the relay back, or raise max_slot_wal_keep_size",
			Anchor: AnchorSlotWAL,
		})
	}
	return nil, warnings
}

func (s *Source) slotAge() time.Duration {
	return max(s.ops.clock().Sub(s.ops.started)-time.Duration(s.slotTaken.Load()), 0)
}

// bytesText prints a size for people, in binary units.
func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for v >= unit && i < 4 {
		v /= unit
		i++
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}
