package mongo

import "github.com/walrelay/walrelay/event"

// The sections of docs/runbook.md that errors of this package point at.
const (
	anchorUnreachable event.Anchor = "mongo-unreachable"
	anchorTable       event.Anchor = "mongo-collection"
)
