package mongostream

// ramp says how many events to ask for next. A server that is asked for many from
// an old position answers only once it has found them all or is at the end of its
// log, which can take minutes where they lie far apart: so the first answers are
// for few, and doubled from there.
type ramp struct {
	most int // events
	size int // of the next request
	// eventBytes is what an event took lately, so that an answer stays near replyBytes.
	eventBytes int
}

// replyBytes is what one answer should hold: enough that its cost is shared,
// little enough that one waiting event pins little.
const replyBytes = 2 << 20

func newRamp(most int) ramp { return ramp{most: most, size: 1} }

// next is the size of the next request.
func (r *ramp) next() int {
	n := min(r.size, r.most)
	if r.eventBytes > 0 {
		n = min(n, replyBytes/r.eventBytes)
	}
	return max(n, 1)
}

// took notes an answer.
func (r *ramp) took(events, bytes int) {
	if events == 0 {
		return
	}
	r.eventBytes = max(bytes/events, r.eventBytes*3/4)
	if r.size < r.most {
		r.size *= 2
	}
}
