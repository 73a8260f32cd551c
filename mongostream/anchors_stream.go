package mongostream

import "github.com/walrelay/walrelay/event"

// Sections that only reading points at.
const (
	AnchorStandby      event.Anchor = "mongo-standby"
	AnchorOtherCluster event.Anchor = "mongo-other-cluster"
	AnchorWentBack     event.Anchor = "mongo-went-back"
	AnchorDropped      event.Anchor = "mongo-dropped"
	AnchorUndecodable  event.Anchor = "undecodable"
)
