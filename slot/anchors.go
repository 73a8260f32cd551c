package slot

import "github.com/walrelay/walrelay/event"

// The sections of docs/runbook.md that errors of this package point at.
const (
	AnchorOptions        event.Anchor = "source-options"
	AnchorUnreachable    event.Anchor = "postgres-unreachable"
	AnchorCredentials    event.Anchor = "postgres-credentials"
	AnchorRights         event.Anchor = "postgres-rights"
	AnchorDatabase       event.Anchor = "database-missing"
	AnchorTLS            event.Anchor = "postgres-tls"
	AnchorPooler         event.Anchor = "pooler"
	AnchorVersion        event.Anchor = "postgres-version"
	AnchorStandby        event.Anchor = "standby"
	AnchorWALLevel       event.Anchor = "wal-level"
	AnchorNoFreeSlot     event.Anchor = "no-free-slot"
	AnchorNoFreeSender   event.Anchor = "no-free-sender"
	AnchorTable          event.Anchor = "outbox-table"
	AnchorPublication    event.Anchor = "publication"
	AnchorPublicationOld event.Anchor = "publication-younger-than-slot"
	AnchorNotInitialised event.Anchor = "not-initialised"
	AnchorSlotActive     event.Anchor = "slot-active"
	AnchorSlotWrong      event.Anchor = "slot-wrong"
	AnchorSlotLost       event.Anchor = "slot-lost"
	AnchorSlotInvalid    event.Anchor = "slot-invalidated"
	AnchorSlotAdvanced   event.Anchor = "slot-advanced"
	AnchorOtherCluster   event.Anchor = "other-cluster"
	AnchorPromoted       event.Anchor = "promoted-standby"
	AnchorLogWentBack    event.Anchor = "log-went-back"
	AnchorServer         event.Anchor = "postgres-error"
)
