package mongostream

import "github.com/walrelay/walrelay/event"

const remedyLost = "where documents are marked, set on_gap: catch_up and start again: what is pending in the collection is published first; otherwise compare the outbox documents that were committed since with the topics, publish what is missing, then choose where to go on with 'walrelay position set'"

func usage(what, remedy string) *event.Error {
	return &event.Error{Class: event.Halt, Fault: event.FaultUsage, What: what, Remedy: remedy, Anchor: AnchorOptions}
}

func retry(anchor event.Anchor, what, remedy string) *event.Error {
	return &event.Error{Class: event.Retry, What: what, Remedy: remedy, Anchor: anchor}
}

func precondition(anchor event.Anchor, what, remedy string) *event.Error {
	return &event.Error{Class: event.Halt, Fault: event.FaultPrecondition, What: what, Remedy: remedy, Anchor: anchor}
}

func gap(anchor event.Anchor, what, remedy string) *event.Error {
	return &event.Error{Class: event.Halt, Fault: event.FaultGap, What: what, Remedy: remedy, Anchor: anchor}
}
