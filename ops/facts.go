package ops

import (
	"go.uber.org/zap"

	"github.com/walrelay/walrelay/event"
)

// Facts writes the log lines that recur, so that the same thing has the same
// message and the same keys everywhere. [Ops] writes those that it learns of
// itself: changes of state, reasons of the broker, changes of partitions.
type Facts struct{ log *zap.Logger }

// NewFacts writes to log.
func NewFacts(log *zap.Logger) Facts { return Facts{log: log} }

// State says that a source went from one state to another, and why. from is empty for the first state.
func (f Facts) State(source string, from, to event.State, c event.Condition) {
	fields := []zap.Field{zap.String("source", source), zap.String("state", string(to))}
	if from != "" {
		fields = append(fields, zap.String("from", string(from)))
	}
	fields = append(fields, conditionFields(c)...)
	switch to {
	case event.StateHalted:
		f.log.Error("source halted", fields...)
	case event.StateDisconnected:
		if from == event.StateConnecting || from == event.StateStarting {
			f.log.Warn("source cannot connect", fields...)
			return
		}
		f.log.Warn("source lost its connection", fields...)
	default:
		f.log.Info("source changed its state", fields...)
	}
}

// Gear says that a source is read in another way now, and why.
func (f Facts) Gear(source, gear, why string) {
	fields := []zap.Field{zap.String("source", source), zap.String("gear", gear)}
	if why != "" {
		fields = append(fields, zap.String("why", why))
	}
	f.log.Info("source changed its gear", fields...)
}

// SourceWarning says that something about a source should be looked at although
// events flow, or (an empty What) that it is over.
func (f Facts) SourceWarning(source, key string, c event.Condition) {
	fields := append([]zap.Field{zap.String("source", source), zap.String("warning", key)}, conditionFields(c)...)
	if c.What == "" {
		f.log.Info("a warning is over", fields...)
		return
	}
	f.log.Warn("source warns", fields...)
}

// Truncated says that published tables were truncated, which loses no event.
func (f Facts) Truncated(source string, n int) {
	f.log.Info("truncate passed by: the rows that were committed before it are published all the same",
		zap.String("source", source), zap.Int("truncates", n))
}

// Condition says that a reason for not being ready came up, or (an empty What)
// that it is gone.
func (f Facts) Condition(subject string, c event.Condition) {
	if c.What == "" {
		f.log.Info("all well again", zap.String("subject", subject))
		return
	}
	f.log.Warn("not ready", append([]zap.Field{zap.String("subject", subject)}, conditionFields(c)...)...)
}

// Warning says something about the configuration that an operator should know.
func (f Facts) Warning(c event.Condition) { f.log.Warn("configuration warning", conditionFields(c)...) }

// PartitionsChanged says that keys may have moved to other partitions.
func (f Facts) PartitionsChanged(topic string, before, now int) {
	f.log.Warn("topic has another number of partitions", zap.String("topic", topic),
		zap.Int("before", before), zap.Int("partitions", now))
}

func conditionFields(c event.Condition) []zap.Field {
	if c.What == "" {
		return nil
	}
	fields := []zap.Field{zap.String("what", c.What)}
	if c.Remedy != "" {
		fields = append(fields, zap.String("remedy", c.Remedy))
	}
	if c.Anchor != "" {
		fields = append(fields, zap.String("anchor", string(c.Anchor)))
	}
	return fields
}

// LogEnd writes one line per source with what happened since the start, and one
// for the process with the cause of the end, which may be nil.
func (o *Ops) LogEnd(cause error) {
	for _, s := range o.sources() {
		_, inFlight := s.inFlight()
		o.facts.log.Info("source ended", zap.String("source", s.name),
			zap.Int64("received", s.received.Load()), zap.Int64("published", s.published.Load()),
			zap.Int64("deferred", s.deferred.Load()), zap.Int64("unacknowledged", inFlight),
			zap.Int64("reconnects", s.reconnects.Load()), zap.String("confirmed", s.positionText(s.progress().Confirmed)))
	}
	fields := []zap.Field{zap.Duration("uptime", o.clock().Sub(o.started))}
	if cause != nil {
		o.facts.log.Error("relay ended", append(fields, zap.Error(cause))...)
		return
	}
	o.facts.log.Info("relay ended", fields...)
}
