package relay

import (
	"fmt"
	"strings"

	"github.com/walrelay/walrelay/event"
)

// leftover says what was read and is not acknowledged at the end, and why; nil when there
// is nothing. All of it has one fault: it comes again at the next start.
func (r *Relay) leftover(closeErr error) error {
	var slow, torn, behind int64
	var why error
	for _, f := range r.feeds {
		n := f.underWay.Load() + f.failed.Load()
		cut := f.open // in the middle of a transaction: its events come again, the ones under way too
		failure := f.failure.Load()
		switch {
		case n == 0 && !cut:
			continue
		case failure != nil && event.ClassOf(*failure) != event.Retry:
			if behind += n; why == nil {
				why = fmt.Errorf("source %s: %w", f.Name, *failure)
			}
			if n == 0 {
				behind++
			}
		case n == 0:
			torn++
		default:
			if slow += n; cut {
				slow++
			}
		}
	}
	var parts []string
	remedy := "none is lost: they are read again at the next start; mend first what halted their source"
	if behind > 0 {
		parts = append(parts, fmt.Sprintf("%d events at or behind what halted their source", behind))
	}
	if torn > 0 {
		parts = append(parts, fmt.Sprintf("%d transactions whose end did not come", torn))
		remedy = "none is lost: they are read again at the next start; see whether the server of the source answers"
	}
	if slow > 0 {
		parts = append(parts, fmt.Sprintf("%d events unacknowledged by Kafka", slow))
		remedy = "none is lost: they are read again at the next start; give a longer grace if Kafka was only slow"
	}
	if len(parts) == 0 {
		return nil
	}
	if why == nil {
		why = closeErr
	}
	return &event.Error{
		Class: event.Halt, Fault: event.FaultUnacknowledged, Anchor: "unacknowledged",
		What: "stopped with " + strings.Join(parts, " and "), Remedy: remedy, Cause: why,
	}
}
