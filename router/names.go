package router

import (
	"strings"

	"github.com/walrelay/walrelay/event"
)

// The names of the headers that walrelay writes.
const (
	headerForzeEventID     = "forze_event_id"
	headerForzeOccurredAt  = "forze_occurred_at"
	headerForzeCorrelation = "forze_correlation_id"
	headerForzeCausation   = "forze_causation_id"
	headerForzeExecution   = "forze_execution_id"
	headerForzeTenant      = "forze_tenant_id"
	headerForzeHLC         = "forze_hlc"
	headerForzeType        = "forze_type"
	headerTraceparent      = "traceparent"

	headerID   = "id"
	headerType = "type"

	headerCESpecVersion = "ce_specversion"
	headerCEID          = "ce_id"
	headerCEType        = "ce_type"
	headerCESource      = "ce_source"
	headerCETime        = "ce_time"

	headerPosition = "walrelay_position"
	// headerTransactional, with the value false, marks what was written outside of any transaction.
	headerTransactional = "walrelay_transactional"

	// ownPrefix is ours, whatever stands behind it.
	ownPrefix = "walrelay_"
)

// reservedNames are those that nobody else may write, also where walrelay leaves
// the header out: a message must not invent the tenant that its event lacks.
// The last three of forze belong to that project's transports.
func reservedNames(p event.Preset, cloudEvents bool) map[string]bool {
	names := []string{headerID, headerType}
	if p == event.Forze {
		names = []string{
			headerForzeEventID, headerForzeOccurredAt, headerForzeCorrelation, headerForzeCausation, headerForzeExecution,
			headerForzeTenant, headerForzeHLC, headerForzeType, "forze_key", "forze_encoding", "forze_enqueued_at",
		}
	}
	if cloudEvents {
		names = append(names, headerCESpecVersion, headerCEID, headerCEType, headerCESource, headerCETime)
	}
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

func reserved(p event.Preset, cloudEvents bool, name string) bool {
	return strings.HasPrefix(name, ownPrefix) || reservedNames(p, cloudEvents)[name]
}
