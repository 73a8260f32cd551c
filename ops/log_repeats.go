package ops

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// repeats counts the lines that the sampler drops and writes one line about each
// kind of them when the interval is over.
type repeats struct {
	core  zapcore.Core // below the sampler
	after time.Duration
	total atomic.Int64

	mu struct {
		sync.Mutex
		lines map[line]int64
		// timer runs while lines is not empty; it is started by the first drop, so
		// that no goroutine waits while nothing is dropped.
		timer *time.Timer
	}
}

// line is what makes two log lines equal.
type line struct {
	level   zapcore.Level
	message string
}

// maxKinds bounds the kinds of lines that are told apart within one interval.
const maxKinds = 64

func newRepeats(core zapcore.Core, after time.Duration) *repeats {
	r := &repeats{core: core, after: after}
	r.mu.lines = map[line]int64{}
	return r
}

// decided is the sampler's hook.
func (r *repeats) decided(e zapcore.Entry, d zapcore.SamplingDecision) {
	if d&zapcore.LogDropped == 0 {
		return
	}
	r.total.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	k := line{e.Level, e.Message}
	if _, known := r.mu.lines[k]; !known && len(r.mu.lines) >= maxKinds {
		k = line{e.Level, "(lines of various kinds)"}
	}
	r.mu.lines[k]++
	if r.mu.timer == nil {
		r.mu.timer = time.AfterFunc(r.after, r.flush)
	}
}

func (r *repeats) flush() {
	r.mu.Lock()
	lines := r.mu.lines
	r.mu.lines = map[line]int64{}
	if r.mu.timer != nil {
		r.mu.timer.Stop()
		r.mu.timer = nil
	}
	r.mu.Unlock()
	for k, n := range lines {
		e := zapcore.Entry{Level: k.level, Time: time.Now(), Message: "equal lines were dropped"}
		if ce := r.core.Check(e, nil); ce != nil {
			ce.Write(zap.String("line", k.message), zap.Int64("lines", n))
		}
	}
}
