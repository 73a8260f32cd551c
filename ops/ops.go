package ops

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/walrelay/walrelay/event"
)

// Options of [New]. The zero value works.
type Options struct {
	// Name is the relay's name from the configuration; Version that of the build.
	Name, Version string
	// Registry takes the metrics; nil makes a new one. Other rooms register theirs
	// in the same (see [Ops.Registry]).
	Registry *prometheus.Registry
	// Clock is time.Now when nil.
	Clock func() time.Time
	// Log may be nil: nothing is logged, the page shows no lines.
	Log *Log
}

// Ops holds what is known of the running relay. All methods are safe for any goroutine.
type Ops struct {
	name, version string
	clock         func() time.Time
	started       time.Time
	registry      *prometheus.Registry
	log           *Log
	facts         Facts
	broker        Broker
	topics        tally[topicCounts]

	mu struct {
		sync.Mutex
		sources      []*Source
		loops        []*Beat
		warnings     []event.Condition
		certificates map[string]time.Time
	}
}

// New makes the Ops of one process and registers its metrics, those of the Go
// runtime and those of the process.
func New(opt Options) *Ops {
	o := &Ops{name: opt.Name, version: opt.Version, clock: opt.Clock, registry: opt.Registry, log: opt.Log}
	if o.clock == nil {
		o.clock = time.Now
	}
	if o.registry == nil {
		o.registry = prometheus.NewRegistry()
	}
	logger := zap.NewNop()
	if o.log != nil {
		logger = o.log.Logger
	}
	o.started = o.clock()
	o.facts = NewFacts(logger)
	o.topics.limit = maxTopics
	o.broker.ops = o
	o.broker.mu.conditions = map[string]event.Condition{}
	o.mu.certificates = map[string]time.Time{}
	o.registry.MustRegister(
		o,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return o
}

// Registry is where other rooms register metrics of their own.
func (o *Ops) Registry() *prometheus.Registry { return o.registry }

// Broker is the publisher's side.
func (o *Ops) Broker() *Broker { return &o.broker }

// Source registers a source. A source that is started again registers again
// under its name: the probes are replaced, the counters go on.
func (o *Ops) Source(name string, probes SourceProbes) *Source {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.mu.sources {
		if s.name == name {
			s.probes.Store(&probes)
			return s
		}
	}
	s := newSource(o, name, probes)
	o.mu.sources = append(o.mu.sources, s)
	return s
}

// Warn shows a warning about the configuration, from now on. It does not touch readiness.
func (o *Ops) Warn(c event.Condition) {
	o.mu.Lock()
	o.mu.warnings = append(o.mu.warnings, c)
	o.mu.Unlock()
	o.facts.Warning(c)
}

// Certificate says until when the client certificate of that name is valid; call
// it again when the file was renewed. name is a word of the configuration.
func (o *Ops) Certificate(name string, notAfter time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.certificates[name] = notAfter
}

// Run takes a step each second until ctx ends: it measures rates, remembers when
// a source was last seen with nothing left to publish, and logs changes of state.
// [Server.Run] does it too; call Run only where no server runs.
func (o *Ops) Run(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	o.watch()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			o.watch()
		}
	}
}

func (o *Ops) watch() {
	now := o.clock()
	for _, s := range o.sources() {
		s.watch(now)
	}
}

func (o *Ops) sources() []*Source {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.mu.sources)
}

func (o *Ops) loops() []*Beat {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.mu.loops)
}

// redact is the last line of defence for texts that rooms made.
func (o *Ops) redact(s string) string {
	if o.log == nil {
		return s
	}
	return o.log.Secrets.String(s)
}

func (o *Ops) redactCondition(c event.Condition) event.Condition {
	c.What, c.Remedy = o.redact(c.What), o.redact(c.Remedy)
	return c
}
