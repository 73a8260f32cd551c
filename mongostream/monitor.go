package mongostream

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// Monitor measures how far a stream is behind, and how much room its position has before
// the oplog is cut past it. It is for one goroutine.
//
// Tokens and the log are compared by cluster time, which has whole seconds; no clock of ours is in it. A figure
// that the server does not tell, or not this user, is Unmeasured.
type Monitor struct {
	samples []sample // the newest last, all of one member
	moved   struct {
		received bson.Timestamp
		at       time.Time
	}
}

// sample is where things stood at a moment, by our own clock.
type sample struct {
	at                time.Time
	oldest, confirmed bson.Timestamp
	member            string
	young             bool // the oplog was not full then
}

// rateOver is how long ago the sample is, at least, that a rate is taken from: cluster times
// have whole seconds, and an oplog is cut in pieces.
const rateOver = time.Minute

// Report asks the server. received and confirmed are the times of the newest token that was read
// and of the position that is remembered; zero: none yet. Errors are classified.
func (m *Monitor) Report(ctx context.Context, client *mongo.Client, received, confirmed bson.Timestamp) (event.StreamReport, error) {
	f, err := readHello(ctx, client)
	if err != nil {
		return event.StreamReport{}, err
	}
	log, err := readOplog(ctx, client)
	if err != nil && !errors.Is(err, errHidden) {
		return event.StreamReport{}, err
	}
	return m.report(time.Now(), f, log, err == nil, received, confirmed), nil
}

func (m *Monitor) report(now time.Time, f Facts, log oplog, logKnown bool, received, confirmed bson.Timestamp) event.StreamReport {
	r := event.StreamReport{
		StreamLag: event.Unmeasured, CheckpointLag: event.Unmeasured, MajorityLag: event.Unmeasured,
		OplogWindow: event.Unmeasured, Headroom: event.Unmeasured, HeadroomETA: event.Unmeasured,
		ClockOffset: f.Offset, Member: f.Member, At: now,
	}
	if !f.Majority.IsZero() {
		r.MajorityLag = between(f.Majority, f.Applied)
		r.StreamLag, r.CheckpointLag = behind(received, f.Majority), behind(confirmed, f.Majority)
		r.Majority = AtTime(after(f.Majority))
	}
	if received != m.moved.received || m.moved.at.IsZero() || r.StreamLag <= time.Second {
		m.moved.received, m.moved.at = received, now
	}
	r.StillFor = now.Sub(m.moved.at)
	if !logKnown {
		return r
	}
	r.OplogWindow = log.window()
	if confirmed.IsZero() {
		return r
	}
	r.Headroom = between(log.Oldest, confirmed)
	m.remember(sample{now, log.Oldest, confirmed, f.Member, log.young()})
	r.Cut, r.HeadroomETA = m.pace(r.Headroom)
	return r
}

func behind(position, head bson.Timestamp) time.Duration {
	if position.IsZero() {
		return event.Unmeasured
	}
	return between(position, head)
}

// remember keeps the samples of the last minute, and one before. After an election they are
// of another oplog, which may reach back less far.
func (m *Monitor) remember(s sample) {
	if n := len(m.samples); n > 0 && m.samples[n-1].member != s.member {
		m.samples = m.samples[:0]
	}
	m.samples = append(m.samples, s)
	for len(m.samples) > 2 && s.at.Sub(m.samples[1].at) >= rateOver {
		m.samples = m.samples[1:]
	}
}

// pace says whether the oplog is being cut, and when it will have caught up with the position if
// both go on as they did.
func (m *Monitor) pace(headroom time.Duration) (cut bool, eta time.Duration) {
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	elapsed := last.at.Sub(first.at)
	cutBy := between(first.oldest, last.oldest)
	cut = cutBy > 0 || last.oldest != first.oldest
	if lost := cutBy - between(first.confirmed, last.confirmed); elapsed >= rateOver && lost > 0 {
		return cut, time.Duration(float64(headroom) * float64(elapsed) / float64(lost))
	}
	return cut, event.Unmeasured
}
