package relay

import "time"

// verdict is what the observer was told of a source's clock, so that each thing is
// taken back once. It belongs to the goroutine that reads the clock.
type verdict struct {
	s               *sorter
	f               *feed
	since           time.Time // of the first of the readings that failed; zero: the last one did not
	unreadable, out bool
}

// clockPatience is for how long readings may fail before that is worth a word: a source
// that connects anew fails some.
const clockPatience = 5 * time.Second

func (v *verdict) unread(err error) {
	if v.since.IsZero() {
		v.since = time.Now()
	}
	if v.unreadable || time.Since(v.since) < clockPatience {
		return
	}
	v.unreadable = true
	if say := v.s.r.obs.ClockUnread; say != nil {
		say(v.f.Name, err)
	}
}

func (v *verdict) read() {
	v.since = time.Time{}
	if !v.unreadable {
		return
	}
	v.unreadable = false
	if say := v.s.r.obs.ClockRead; say != nil {
		say(v.f.Name)
	}
}

func (v *verdict) stalled(still time.Duration, detached bool) {
	if !detached {
		return
	}
	v.out = true
	if say := v.s.r.obs.Stalled; say != nil {
		say(v.f.Name, still)
	}
}

// resumed looks whether a source that had stalled counts again: the stream came on, or a new
// session began.
func (v *verdict) resumed() {
	if !v.out {
		return
	}
	v.s.mu.Lock()
	still := v.s.sources[v.f.index].stalled
	v.s.mu.Unlock()
	if still {
		return
	}
	v.out = false
	if say := v.s.r.obs.Resumed; say != nil {
		say(v.f.Name)
	}
}
