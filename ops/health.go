package ops

// Health is the answer of /healthz.
type Health struct {
	// Live is false when a main loop made no step for longer than it may.
	Live  bool   `json:"live"`
	Loops []Loop `json:"loops"`
}

// Loop is one main loop of the process.
type Loop struct {
	Name          string  `json:"name"`
	Live          bool    `json:"live"`
	AgeSeconds    float64 `json:"age_seconds"`     // since its last step
	MaxAgeSeconds float64 `json:"max_age_seconds"` // beyond this it counts as stuck
}

// Health asks whether the main loops make steps, and nothing else: a restart
// helps against a stuck loop, not against a broker or a database that is away.
func (o *Ops) Health() Health {
	now := o.clock()
	h := Health{Live: true, Loops: []Loop{}}
	for _, b := range o.loops() {
		if b.ended.Load() {
			continue
		}
		age := b.age(now)
		l := Loop{Name: b.name, Live: age <= b.maxAge, AgeSeconds: age.Seconds(), MaxAgeSeconds: b.maxAge.Seconds()}
		h.Live = h.Live && l.Live
		h.Loops = append(h.Loops, l)
	}
	return h
}
