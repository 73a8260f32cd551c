package main

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kzap"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
	"github.com/walrelay/walrelay/publish"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/router"
	"github.com/walrelay/walrelay/slot"
)

// loopAge is how long a loop may make no step before the process counts as
// stuck. Every loop steps at least once a second, whatever the servers do.
const loopAge = 60 * time.Second

// house is the assembled program.
type house struct {
	ops       *ops.Ops
	relay     *relay.Relay
	publisher *publish.Publisher
}

// assemble turns the configuration into rooms and joins them.
func assemble(ctx context.Context, c *config.Config, log *ops.Log, exitOnHalt bool) (*house, error) {
	o := ops.New(ops.Options{Name: c.Name, Version: versionText(), Log: log})
	var feeds []relay.Feed
	rooms := map[string]*sourceRoom{}
	for i, s := range c.Sources {
		opt, err := c.SlotOptions(s.Key)
		if err != nil {
			return nil, err
		}
		opt.HaltOnPrecondition = exitOnHalt
		ropt, err := c.RouterOptions(s.Key)
		if err != nil {
			return nil, err
		}
		rt, err := router.New(ropt)
		if err != nil {
			return nil, err
		}
		room := newSourceRoom(o, s.Key, i, opt)
		rooms[s.Key] = room
		feeds = append(feeds, relay.Feed{Name: s.Key, Open: room.open, Router: rt})
	}
	h := &house{ops: o}
	h.relay = relay.New(relay.Options{Grace: c.Grace, ExitOnHalt: exitOnHalt}, relayObserver(o, rooms), feeds)
	for _, room := range rooms {
		room.relay.Store(h.relay)
	}
	popt := c.PublishOptions()
	popt.Result = h.relay.Result
	topics, _, err := knownTopics(c)
	if err != nil {
		return nil, err
	}
	popt.Topics = topics
	popt.Extra = append(popt.Extra, kgo.WithLogger(kzap.New(log.Logger.Named("kafka"), kzap.Level(kgo.LogLevelWarn))))
	pub, err := publish.Open(ctx, popt, brokerObserver(o, rooms))
	if err != nil {
		return nil, err
	}
	h.publisher = pub
	return h, nil
}

// sourceRoom is one source with what is shown of it.
type sourceRoom struct {
	name  string
	index int
	opt   slot.Options
	ops   *ops.Ops
	view  *ops.Source
	relay atomic.Pointer[relay.Relay]

	pump, keeper, feeder *ops.Beat

	mu struct {
		sync.Mutex
		stream *slot.Stream
		state  event.State
		reason event.Condition
		halted bool // the relay stopped the source: what the stream says does not matter any more
	}
}

func newSourceRoom(o *ops.Ops, name string, index int, opt slot.Options) *sourceRoom {
	r := &sourceRoom{
		name: name, index: index, opt: opt, ops: o,
		pump: o.Loop("pump "+name, loopAge), keeper: o.Loop("keeper "+name, loopAge), feeder: o.Loop("feeder "+name, loopAge),
	}
	r.mu.state = event.StateStarting
	r.view = o.Source(name, ops.SourceProbes{Progress: r.progress, State: r.state, InFlight: r.inFlight})
	return r
}

func (r *sourceRoom) open() (relay.Source, error) {
	s, err := slot.Open(r.opt, slot.Observer{
		State: r.setState,
		Slot:  r.view.SlotReport,
		Warning: func(key string, c event.Condition) {
			r.ops.Broker().Condition("source/"+r.name+"/"+key, c)
		},
		Ignored: func(reason string, n int) {
			if reason == "deferred" {
				r.view.Deferred(n)
				return
			}
			r.view.Ignored(reason, n)
		},
		Reconnect:  func(error) { r.view.Reconnected() },
		PumpBeat:   r.pump.Beat,
		KeeperBeat: r.keeper.Beat,
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.mu.stream = s
	r.mu.Unlock()
	return s, nil
}

func (r *sourceRoom) setState(st event.State, c event.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.halted {
		r.mu.state, r.mu.reason = st, c
	}
}

func (r *sourceRoom) halt(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.halted = true
	r.mu.state, r.mu.reason = event.StateHalted, event.ConditionOf(err)
}

func (r *sourceRoom) state() (event.State, event.Condition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.state, r.mu.reason
}

func (r *sourceRoom) progress() event.Progress {
	r.mu.Lock()
	s := r.mu.stream
	r.mu.Unlock()
	if s == nil {
		return event.Progress{}
	}
	return s.Progress()
}

func (r *sourceRoom) inFlight() (bytes, events int64) {
	r.mu.Lock()
	s := r.mu.stream
	r.mu.Unlock()
	if s == nil {
		return 0, 0
	}
	return s.InFlightBytes(), r.relay.Load().Unsettled(r.index)
}

func relayObserver(o *ops.Ops, rooms map[string]*sourceRoom) relay.Observer {
	committer := o.Loop("committer", loopAge)
	return relay.Observer{
		Received:  func(source string, events int, bytes int64) { rooms[source].view.Received(events, bytes) },
		Published: func(source string, events int, micros int64) { rooms[source].view.Published(events, micros) },
		Halted:    func(source string, err error) { rooms[source].halt(err) },
		Restarted: func(source string, err error) {
			rooms[source].view.Reconnected()
			rooms[source].setState(event.StateDisconnected, event.ConditionOf(err))
		},
		FeederBeat:    func(source string) { rooms[source].feeder.Beat() },
		CommitterBeat: committer.Beat,
	}
}

func brokerObserver(o *ops.Ops, rooms map[string]*sourceRoom) publish.Observer {
	b := o.Broker()
	return publish.Observer{
		Published:         b.Published,
		Latency:           b.Latency,
		Refused:           func(source, topic, reason string) { rooms[source].view.Refused(topic, reason) },
		DeadLettered:      b.DeadLettered,
		Retried:           b.Retried,
		Condition:         b.Condition,
		PartitionsChanged: b.PartitionsChanged,
		TopicWarning: func(topic, what string) {
			o.Warn(event.Condition{What: "topic " + topic + ": " + what, Anchor: "topic-settings"})
		},
		CertificateExpiry: func(t time.Time) { o.Certificate("kafka", t) },
	}
}

// registerSecrets tells the redactor what must never be printed.
func registerSecrets(r *ops.Redactor, c *config.Config) {
	for _, s := range c.Sources {
		raw := s.Value.Postgres.URL.Reveal()
		r.Add(raw)
		if cfg, err := pgx.ParseConfig(raw); err == nil && cfg.Password != "" {
			r.Add(cfg.Password, url.QueryEscape(cfg.Password), url.PathEscape(cfg.Password))
		}
	}
	r.Add(c.Kafka.SASL.Password.Reveal(), c.Kafka.SASL.Token.Reveal(), c.Kafka.SASL.Endpoint.ClientSecret.Reveal())
}
