package mongostream

import "github.com/walrelay/walrelay/event"

// The sections of docs/runbook.md that errors of this package point at.
const (
	AnchorOptions        event.Anchor = "source-options"
	AnchorUnreachable    event.Anchor = "mongo-unreachable"
	AnchorCredentials    event.Anchor = "mongo-credentials"
	AnchorRights         event.Anchor = "mongo-rights"
	AnchorTLS            event.Anchor = "mongo-tls"
	AnchorVersion        event.Anchor = "mongo-version"
	AnchorStandalone     event.Anchor = "mongo-standalone"
	AnchorNoPrimary      event.Anchor = "mongo-no-primary"
	AnchorServer         event.Anchor = "mongo-error"
	AnchorCollection     event.Anchor = "mongo-collection"
	AnchorIndex          event.Anchor = "mongo-index"
	AnchorPositionLost   event.Anchor = "mongo-position-lost"
	AnchorOversize       event.Anchor = "mongo-oversize"
	AnchorMajority       event.Anchor = "mongo-majority"
	AnchorHeadroom       event.Anchor = "mongo-headroom"
	AnchorQuiet          event.Anchor = "mongo-quiet"
	AnchorNotInitialised event.Anchor = "not-initialised"
)
