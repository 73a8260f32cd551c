package mongostream

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// chunk is what the pump hands over: one answer of the server.
type chunk struct {
	reply
	mem *event.Memory // nil without events
	// floor is set when reading begins at a time: what comes at or below it was handed out before.
	floor *string
	// err ends the stream.
	err error
}

func (c chunk) release() {
	if c.mem != nil {
		c.mem.Release()
	}
}

// standing is what the pump knows of the position from session to session.
type standing struct {
	// received is the token after which reading goes on; nil: nobody has told yet.
	received bson.Raw
	// collection is the UUID that the next event must carry; nil: any.
	collection []byte
	byTime     bool     // go on at the token's time, since the server does not find the token
	skip       bson.Raw // an event that is to be passed by
	goodbye    string   // what became of the collection, for people
	noted      bool     // the record says that the stream is followed
	attempts   attempts
}

// errLapsed ends a session whose lease was not renewed in time; whether it can be had again the next one sees.
var errLapsed error = &event.Error{
	Class: event.Retry, Anchor: AnchorStandby, What: "the lease on the source was not renewed in time",
	Remedy: "see that the server takes majority writes",
}

// settleSpan after a transaction's last event in sight, a server that has more of it would have said so.
const settleSpan = 10 * time.Millisecond

// session takes the source, opens the change stream and reads until it ends.
func (s *Stream) session(ctx context.Context, p *standing) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	from, note, err := s.startAt(ctx, client, p)
	if err != nil {
		return err
	}
	cur, r, err := openCursor(ctx, client, &s.opt, from)
	if err != nil {
		return err
	}
	defer func() { cur.close(ctx) }()
	if p.received == nil {
		p.received = r.end // from now on
	}
	if from.token == nil && !from.time.IsZero() {
		floor := tokenData(p.received)
		if !s.send(ctx, chunk{floor: &floor}) {
			return nil
		}
	}
	if err := s.noteStreaming(ctx, client, p); err != nil {
		return err
	}
	s.state(event.StateStreaming, event.Condition{})
	if s.obs.Started != nil {
		s.obs.Started(event.AtToken(tokenData(p.received)), note)
	}
	return s.follow(ctx, cur, p)
}

// follow reads answers until the cursor ends. nil: the stream is to end, or the collection did and reading goes
// on behind it.
func (s *Stream) follow(ctx context.Context, cur *cursor, p *standing) error {
	ramp := newRamp(int(s.opt.BatchSize))
	await := time.Millisecond // the first look finds out whether anything is there
	for {
		if err := s.waitForRoom(ctx); err != nil {
			return err
		}
		r, err := cur.more(ctx, ramp.next(), await)
		if s.obs.PumpBeat != nil {
			s.obs.PumpBeat()
		}
		if err != nil {
			return err
		}
		if s.opt.writesRecord() && !s.reigns() {
			return errLapsed
		}
		ramp.took(r.count, r.size)
		if await = s.opt.MaxAwait; r.count > 0 {
			await = settleSpan
			if err := s.guard(p, &r); err != nil {
				return err
			}
		}
		if !s.handOver(ctx, p, r) {
			return nil
		}
		if cur.id == 0 {
			return s.ended(p)
		}
	}
}

// waitForRoom waits while the budget of memory is spent.
func (s *Stream) waitForRoom(ctx context.Context) error {
	for !s.memory.room() {
		if s.obs.PumpBeat != nil {
			s.obs.PumpBeat()
		}
		select {
		case <-s.memory.freed:
		case <-time.After(wake):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// handOver gives an answer to the reader and notes how far reading has come.
func (s *Stream) handOver(ctx context.Context, p *standing, r reply) bool {
	c := chunk{reply: r}
	if r.count > 0 {
		c.mem = s.memory.take(r.size)
	} else if parts, _ := parseToken(tokenData(r.end)); parts.Invalidate && s.opt.OnDrop != DropContinue {
		c.end = nil // no place to go on at, unless an operator wants to: a restart has to see the drop again
	}
	end := r.last
	if tokenData(r.end) > tokenData(end) {
		end = r.end
	}
	if end != nil {
		p.received = end
		s.received.Store(uint64(lsn(tokenTime(tokenData(end)))))
		p.byTime = false
	}
	if at := uint64(lsn(r.at)); at > s.server.Load() {
		s.server.Store(at)
	}
	return s.send(ctx, c)
}

// guard compares the events' collection with the one that was read before: a server
// of another set takes a place in time without a word. Within one stream a
// collection that was dropped and made again is announced.
func (s *Stream) guard(p *standing, r *reply) error {
	if r.ends {
		if what := goodbye(r); what != "" {
			p.goodbye = what
		}
	}
	parts, _ := parseToken(tokenData(r.last))
	if parts.Invalidate {
		p.collection = nil // whatever comes next
		return nil
	}
	if parts.Collection == nil {
		return nil
	}
	if p.collection != nil && string(p.collection) != string(parts.Collection) {
		return gap(AnchorOtherCluster,
			fmt.Sprintf("the events are of a collection %s with the identity %x, and those before were of one with %x: this is another server, or one that was restored", s.opt.Namespace(), parts.Collection, p.collection),
			"if the address is wrong, correct it; otherwise "+remedyLost)
	}
	if p.collection == nil {
		p.collection = parts.Collection
		s.collection.Store(&bson.Binary{Subtype: subtypeUUID, Data: parts.Collection})
	}
	return nil
}

// ended answers what a cursor's end means that the server closed.
func (s *Stream) ended(p *standing) error {
	parts, _ := parseToken(tokenData(p.received))
	if !parts.Invalidate {
		return errCursorClosed
	}
	if s.opt.OnDrop == DropContinue {
		p.collection = nil
		return nil
	}
	return s.dropped(p.goodbye)
}

var errCursorClosed error = &event.Error{Class: event.Retry, Anchor: AnchorServer, What: "the server closed the change stream", Remedy: "nothing; it is opened again"}

// goodbye says what became of the collection.
func goodbye(r *reply) (what string) {
	for rest := r.events; len(rest) > 0; {
		var doc []byte
		var c change
		if doc, rest = nextEvent(rest); c.read(doc) != nil {
			break
		}
		switch string(c.op) {
		case opDrop:
			what = "was dropped"
		case opDropDatabase:
			what = "was dropped with its database"
		case opRename:
			to, _ := c.to.Lookup("coll").StringValueOK()
			what = "was renamed to " + to
		}
	}
	return what
}

func (s *Stream) dropped(what string) error {
	if what == "" {
		what = "is gone: it was dropped or renamed"
	}
	return &event.Error{
		Class: event.Halt, Fault: event.FaultGap, Anchor: AnchorDropped,
		What:   fmt.Sprintf("collection %s %s; everything that was inserted before is handed over", s.opt.Namespace(), what),
		Remedy: "if that was meant, and the next collection of that name is to be followed, set on_drop: continue and start again; otherwise bring the collection back under its name and choose where to go on with 'walrelay position set'",
	}
}

// startAt finds where to begin: where this process left off, or where the record says.
func (s *Stream) startAt(ctx context.Context, client *mongo.Client, p *standing) (start, string, error) {
	if !s.opt.writesRecord() {
		switch {
		case p.received != nil:
			return p.start(), "taken up again where the stream broke", nil
		case s.opt.Peek:
			return s.peekAt(ctx, client, p)
		}
		return start{}, "nothing is remembered: from now on", nil
	}
	fresh := p.received == nil
	r, err := s.recall(ctx, client)
	if err != nil {
		return start{}, "", err
	}
	if !fresh {
		s.skip(ctx, client, p)
		return p.start(), "taken up again where the stream broke", nil
	}
	p.received, p.skip = r.Token, r.Skip
	if r.Kind != "invalidate" && len(r.CollectionUUID.Data) == uuidBytes {
		p.collection = r.CollectionUUID.Data
	}
	s.saved.Store(&r.Data)
	from, note := r.start(&s.opt), "going on at the remembered position"
	if from.token == nil {
		note = "going on at the time of the remembered position, since the stream is another"
	}
	if p.byTime {
		from = p.start()
	}
	return from, note, nil
}

// noteStreaming says in the record that the stream is followed from now on; once.
func (s *Stream) noteStreaming(ctx context.Context, client *mongo.Client, p *standing) error {
	if p.noted || !s.opt.writesRecord() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.WireTimeout)
	defer cancel()
	s.tenure.Lock()
	mine := s.tenure.lease
	s.tenure.Unlock()
	r, err := s.opt.update(ctx, client, mine.filter(), bson.D{{Key: "phase", Value: event.PhaseStreaming}}, false)
	if err == nil && r == nil {
		return s.supplanted(nil)
	}
	p.noted = err == nil
	return err
}

func (p *standing) start() start {
	if p.byTime {
		return start{time: tokenTime(tokenData(p.received))}
	}
	return start{token: p.received}
}

// recall takes the source and judges what is remembered of it. The server is asked after
// the record was read: a position that the keeper stores meanwhile is not of the future.
func (s *Stream) recall(ctx context.Context, client *mongo.Client) (*Record, error) {
	r, err := s.take(ctx, client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opt.WireTimeout)
	defer cancel()
	facts, err := ReadFacts(ctx, client)
	if err != nil {
		return nil, err
	}
	return r, judge(r, facts, &s.opt)
}
