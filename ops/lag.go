package ops

import (
	"time"

	"github.com/walrelay/walrelay/event"
)

// nothingLeft says that everything the server has told us of is acknowledged.
// Only a source that streams can know.
func (s *Source) nothingLeft() bool {
	if state, _ := s.state(); state != event.StateStreaming {
		return false
	}
	_, events := s.inFlight()
	p := s.progress()
	return events == 0 && p.Published >= p.Server
}

// lagSeconds is an upper bound for the age of the oldest commit that Kafka has
// not acknowledged. Where the table is read instead of the log, it is the age of
// the oldest row that is not published.
//
// The oldest such commit is younger than the newest published one and younger
// than the last moment at which nothing was left. The second bound matters after
// an idle hour: the first commit then is a moment old, while the newest published
// one is an hour old. It also makes the figure grow while the server is out of
// reach, when nobody knows what it has.
func (s *Source) lagSeconds(now time.Time) (seconds float64, known bool) {
	if state, _ := s.state(); state == event.StateStandby {
		return 0, false
	}
	if gear, _ := s.gear(); gear == "poll" || gear == "catch_up" {
		// The log tells nothing meanwhile; the table does.
		b, known := s.backlog()
		return b.OldestPending.Seconds(), known
	}
	if s.nothingLeft() {
		return 0, true
	}
	since := max(s.commitPublished.Load(), s.caughtUp.Load())
	if s.clusterTimes() {
		// All that was committed until then is published. Where others write all the time the stream is
		// never at the very end of the log.
		since = max(since, clusterSeconds(s.progress().Published)*1_000_000)
	}
	if since == 0 {
		return 0, false
	}
	return max(float64(now.UnixMicro()-since)/1e6, 0), true
}

// rung is one step of the ladder from the server's head to the confirmed position.
type rung struct {
	name  string
	lsn   event.LSN
	known bool
}

// head is the newest end of the server's log that anyone told us of.
func head(p event.Progress, r *event.SlotReport) event.LSN {
	if r != nil {
		return max(p.Server, r.ServerHead)
	}
	return p.Server
}

// ladder lists the rungs from the top. It is empty for sources without LSNs.
func (s *Source) ladder() []rung {
	p, r := s.progress(), s.slot.Load()
	h := head(p, r)
	if h == 0 {
		return nil
	}
	rungs := []rung{{"server", h, true}}
	if r != nil {
		rungs = append(rungs, rung{"sent", r.SentLSN, r.SentLSN != 0})
	}
	rungs = append(rungs,
		rung{"received", p.Received, p.Received != 0},
		rung{"published", p.Published, p.Published != 0},
		rung{"confirmed", p.Confirmed, p.Confirmed != 0},
	)
	if r != nil {
		rungs = append(rungs, rung{"restart", r.RestartLSN, r.RestartLSN != 0})
	}
	return rungs
}
