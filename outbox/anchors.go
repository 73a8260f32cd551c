package outbox

import "github.com/walrelay/walrelay/event"

// The sections of docs/runbook.md that this package points at.
const (
	AnchorLeases   event.Anchor = "leases"
	AnchorTable    event.Anchor = "table-unavailable"
	AnchorStandby  event.Anchor = "shards-held"
	AnchorHeldKeys event.Anchor = "held-keys"
)
