package main

import (
	"context"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kzap"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/ops"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/publish"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/router"
)

// loopAge is how long a loop may make no step before the process counts as
// stuck. Every loop steps at least once a second, whatever the servers do.
const loopAge = 60 * time.Second

// house is the assembled program.
type house struct {
	ops       *ops.Ops
	relay     *relay.Relay
	publisher *publish.Publisher
	rooms     []*sourceRoom
}

// assemble turns the configuration into rooms and joins them.
func assemble(ctx context.Context, c *config.Config, log *ops.Log, exitOnHalt bool) (*house, error) {
	o := ops.New(ops.Options{Name: c.Name, Version: versionText(), Log: log})
	h := &house{ops: o}
	var feeds []relay.Feed
	rooms := map[string]*sourceRoom{} // by the name of the feed
	desks := &desks{}
	for _, s := range c.Sources {
		room, err := newSourceRoom(o, c, s.Key, exitOnHalt)
		if err != nil {
			return nil, err
		}
		h.rooms = append(h.rooms, room)
		ropt, err := c.RouterOptions(s.Key)
		if err != nil {
			return nil, err
		}
		add := func(name string, open func() (relay.Source, error), desk func() outbox.Desk, reading func(context.Context) (event.Reading, error)) error {
			rt, err := router.New(ropt) // it has scratch memory: one for each feed
			if err != nil {
				return err
			}
			room.feeds = append(room.feeds, len(feeds))
			rooms[name] = room
			feeds = append(feeds, relay.Feed{Name: name, Open: open, Router: rt, Reading: reading})
			desks.of = append(desks.of, desk)
			return nil
		}
		var reading func(context.Context) (event.Reading, error)
		if room.capture.Orders() {
			reading = room.capture.Reading
		}
		if err := add(s.Key, room.capture.Open, room.capture.Desk, reading); err != nil {
			return nil, err
		}
		if room.capture.Sweeps() {
			if err := add(s.Key+" (table)", room.capture.OpenSweep, room.capture.SweepDesk, nil); err != nil {
				return nil, err
			}
		}
	}
	h.relay = relay.New(relay.Options{Grace: c.Grace, ExitOnHalt: exitOnHalt, Order: c.OrderOptions()}, relayObserver(o, rooms), feeds)
	for _, room := range h.rooms {
		room.relay.Store(h.relay)
	}
	popt := c.PublishOptions()
	popt.Result = h.relay.Result
	popt.Desk = desks
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

// run relays until ctx ends; what runs beside the relay outlives it, so that the
// last outcomes are written and the shards given back.
func (h *house) run(ctx context.Context) error {
	for _, room := range h.rooms {
		room.capture.Start()
	}
	err := h.relay.Run(ctx, h.publisher)
	closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, room := range h.rooms {
		// What is not given back expires.
		_ = room.capture.Close(closeCtx)
		if room.store != nil {
			_ = room.store.Close(closeCtx)
		}
	}
	return err
}

// desks finds the desk of each feed; it is publish.Desk.
type desks struct{ of []func() outbox.Desk }

func (d *desks) Held(source uint16, key []byte) bool {
	desk := d.of[source]()
	return desk != nil && desk.Held(key)
}

func (d *desks) Park(ctx context.Context, rec *event.Record, t event.Ticket, why error) error {
	if desk := d.of[t.Source](); desk != nil {
		return desk.Park(ctx, rec, t, why)
	}
	return why
}

func (d *desks) Lettered(rec *event.Record, t event.Ticket, why error) {
	if desk := d.of[t.Source](); desk != nil {
		desk.Lettered(rec, t, why)
	}
}

func (d *desks) Return(rec *event.Record, t event.Ticket, why error) bool {
	desk := d.of[t.Source]()
	return desk != nil && desk.Return(rec, t, why)
}

func relayObserver(o *ops.Ops, rooms map[string]*sourceRoom) relay.Observer {
	committer := o.Loop("committer", loopAge)
	return relay.Observer{
		Received:  func(source string, events int, bytes int64) { rooms[source].view.Received(events, bytes) },
		Published: func(source string, events int, micros int64) { rooms[source].published(events, micros) },
		Halted:    func(source string, err error) { rooms[source].halt(err) },
		Restarted: func(source string, err error) {
			rooms[source].view.Reconnected()
			rooms[source].setState(event.StateDisconnected, event.ConditionOf(err))
		},
		FeederBeat:    func(source string) { rooms[source].feeder.Beat() },
		CommitterBeat: committer.Beat,
		ClockUnread:   func(source string, err error) { rooms[source].clockUnread(err) },
		ClockRead:     func(source string) { rooms[source].view.Warning("clock", event.Condition{}) },
		Stalled:       func(source string, still time.Duration) { rooms[source].stalled(still) },
		Resumed:       func(source string) { rooms[source].view.Warning("stalled", event.Condition{}) },
	}
}

func brokerObserver(o *ops.Ops, rooms map[string]*sourceRoom) publish.Observer {
	b := o.Broker()
	return publish.Observer{
		Published:         b.Published,
		Latency:           b.Latency,
		Refused:           func(source, topic, reason string) { rooms[source].view.Refused(topic, reason) },
		DeadLettered:      b.DeadLettered,
		Parked:            func(source, _, _ string) { rooms[source].aside.Add(1) },
		Held:              func(source string, n int) { rooms[source].aside.Add(int64(n)) },
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
		if raw := s.Value.Mongo.URL.Reveal(); raw != "" {
			r.Add(raw)
			if o, err := (&mongostream.Options{URL: raw}).ClientOptions(); err == nil && o.Auth != nil && o.Auth.Password != "" {
				r.Add(o.Auth.Password, url.QueryEscape(o.Auth.Password), url.PathEscape(o.Auth.Password))
			}
			continue
		}
		raw := s.Value.Postgres.URL.Reveal()
		r.Add(raw)
		if cfg, err := pgx.ParseConfig(raw); err == nil && cfg.Password != "" {
			r.Add(cfg.Password, url.QueryEscape(cfg.Password), url.PathEscape(cfg.Password))
		}
	}
	r.Add(c.Kafka.SASL.Password.Reveal(), c.Kafka.SASL.Token.Reveal(), c.Kafka.SASL.Endpoint.ClientSecret.Reveal())
}
