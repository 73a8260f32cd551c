package inbox

// The headers that are read; walrelay writes them for the schema preset forze.
const (
	HeaderEventID       = "forze_event_id"
	HeaderType          = "forze_type"
	HeaderStamp         = "forze_hlc"
	HeaderCorrelationID = "forze_correlation_id"
	HeaderTenantID      = "forze_tenant_id"
	// HeaderID is the event id of the presets debezium and basic: say so in
	// Options.EventIDHeader.
	HeaderID = "id"

	headerPlainType = "type"
)
