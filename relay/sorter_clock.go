package relay

import (
	"context"
	"time"
)

// nudger is a source that can ask its server where it is, so that a position that
// nothing more comes for is reached soon.
type nudger interface{ Nudge() }

// watch reads the clock of a feed's source again and again, and notices when its
// watermark stands still.
func (s *sorter) watch(ctx context.Context, f *feed) {
	tick := time.NewTicker(s.opt.Every)
	defer tick.Stop()
	said := verdict{s: s, f: f}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		said.resumed()
		if !s.follows(f) {
			said.read() // nobody wants to read it
			continue
		}
		r, err := f.Reading(ctx)
		if err != nil {
			if ctx.Err() == nil {
				said.unread(err)
			}
			said.stalled(s.notice(f))
			continue
		}
		said.read()
		s.mu.Lock()
		src := &s.sources[f.index]
		src.clock, src.read = r.NowMicros, time.Now()
		src.progress.Sample(r)
		s.advanceLocked(src, src.progress.Behind() == 0)
		behind, due := src.progress.Behind() > 0, s.buf.Due()
		s.mu.Unlock()
		if due {
			s.wakeUp()
		}
		if behind {
			f.nudge()
		}
		said.stalled(s.notice(f))
	}
}

// follows: the session at hand reads a log.
func (s *sorter) follows(f *feed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sources[f.index].attached
}

// notice detaches a source whose server has not been heard of for too long. One whose
// feeder is busy has not stopped: it waits for room, or for the broker, and so for us. It
// answers for how long the source said nothing if it detached it just now.
func (s *sorter) notice(f *feed) (still time.Duration, detached bool) {
	if s.opt.StallAfter == 0 || f.feeding.Load() {
		return 0, false
	}
	s.mu.Lock()
	src := &s.sources[f.index]
	still = time.Since(src.advanced)
	stalls := src.attached && !src.stalled && !s.sending && still > s.opt.StallAfter
	if stalls {
		src.stalled = true
		src.stalls++
		s.buf.Detach(int(f.index))
	}
	s.mu.Unlock()
	if stalls {
		s.wakeUp()
	}
	return still, stalls
}

func (f *feed) nudge() {
	f.src.Lock()
	defer f.src.Unlock()
	if n, ok := f.src.source.(nudger); ok {
		n.Nudge()
	}
}
