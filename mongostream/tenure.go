package mongostream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// tenure is the time in which the source is ours. It ends by our own clock before the
// server gives the source to somebody else: counted from before the write that
// renewed it, and a sixth shorter.
type tenure struct {
	until atomic.Int64 // nanoseconds after Stream.began; 0: none

	sync.Mutex
	lease lease
	held  bool // a lease was had: another epoch than its own means that somebody else read
}

func (s *Stream) sinceBegan() int64 { return int64(time.Since(s.began)) }

// reigns reports whether the source is ours now.
func (s *Stream) reigns() bool { return s.sinceBegan() < s.tenure.until.Load() }

// extend notes that the lease was renewed by a write that was sent at the given moment.
func (s *Stream) extend(sent int64) {
	s.tenure.until.Store(sent + int64(s.opt.LeaseTTL-s.opt.LeaseTTL/6))
}

// errTaken is why a stream cannot read: another has the source.
var errTaken = errors.New("another reader has the source")

// errRestart asks for a new stream in place of this one.
var errRestart = errors.New("the stream has to begin anew")

// take makes the source ours, unless it is, and gives the record as it is then; nil where nothing is kept.
func (s *Stream) take(ctx context.Context, client *mongo.Client) (*Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.WireTimeout)
	defer cancel()
	s.tenure.Lock()
	defer s.tenure.Unlock()
	mine := s.tenure.lease
	mine.holder = s.holder
	if !s.tenure.held {
		mine.epoch = -1
	}
	sent := s.sinceBegan()
	r, got, err := s.opt.acquire(ctx, client, mine)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, nil
	case s.tenure.held && r.Epoch != mine.epoch:
		return nil, s.supplanted(r)
	case !got:
		return r, standby(r)
	}
	s.tenure.lease, s.tenure.held = lease{s.holder, r.Epoch}, true
	s.extend(sent)
	return r, nil
}

// supplanted ends a stream whose source was somebody else's meanwhile: what it handed out
// may have been published by the other as well, and the position is theirs.
func (s *Stream) supplanted(r *Record) error {
	s.tenure.until.Store(0)
	who := "somebody else"
	if r != nil && r.Holder != "" && r.Holder != s.holder {
		who = r.Holder
	}
	var err error = &event.Error{
		Class: event.Retry, Anchor: AnchorStandby, Cause: errRestart,
		What:   fmt.Sprintf("source %s was taken over by %s, because its lease was not renewed in time or the position was set anew", s.opt.Source, who),
		Remedy: "nothing, if that was another instance of this relay; a lease that is often lost speaks of a server or a host that hangs",
	}
	s.lost.CompareAndSwap(nil, &err)
	return err
}

func standby(r *Record) error {
	e := retry(AnchorStandby, fmt.Sprintf("the source is read by %s; standing by until it lets go", r.Holder),
		"nothing, if that is another instance of this relay; otherwise stop it")
	e.Cause = errTaken
	return e
}
