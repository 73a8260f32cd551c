package publish

import "github.com/walrelay/walrelay/event"

// The sections of docs/runbook.md that this package's errors and conditions point to.
const (
	AnchorOptions        event.Anchor = "kafka-options"
	AnchorUnreachable    event.Anchor = "kafka-unreachable"
	AnchorAuthentication event.Anchor = "kafka-authentication"
	AnchorACL            event.Anchor = "kafka-acl"
	AnchorVersion        event.Anchor = "kafka-version"
	AnchorTLS            event.Anchor = "kafka-tls-files"
	AnchorRetry          event.Anchor = "kafka-refuses-records"
	AnchorStalled        event.Anchor = "kafka-stalled"
	AnchorReplicas       event.Anchor = "kafka-replicas"
	AnchorTopicMissing   event.Anchor = "topic-missing"
	AnchorTopicConfig    event.Anchor = "topic-config"
	AnchorPoison         event.Anchor = "poison-event"
	AnchorClosed         event.Anchor = "stopped-unacknowledged"
	AnchorParking        event.Anchor = "parking-unavailable"
)
