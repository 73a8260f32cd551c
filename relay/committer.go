package relay

import "time"

// commit is the committer: it confirms what is complete.
func (r *Relay) commit(stop <-chan struct{}) {
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for {
		select {
		case <-r.wake:
		case <-beat.C:
			if r.obs.CommitterBeat != nil {
				r.obs.CommitterBeat()
			}
			r.vouch()
		case <-stop:
			r.confirm()
			return
		}
		r.confirm()
	}
}

// vouch beats for the feeders that wait for somebody else, which is no sign of
// being stuck: for their source, or for a broker that does not acknowledge.
func (r *Relay) vouch() {
	if r.obs.FeederBeat == nil {
		return
	}
	for _, f := range r.feeds {
		if f.waiting.Load() || f.underWay.Load() > 0 {
			r.obs.FeederBeat(f.Name)
		}
	}
}

func (r *Relay) confirm() {
	for _, f := range r.feeds {
		f.confirm()
	}
}

func (f *feed) confirm() {
	f.src.Lock()
	defer f.src.Unlock()
	if f.src.source == nil || f.src.stale {
		return
	}
	pos, ok := f.window.Load().Low(f.visit)
	if !ok {
		return
	}
	f.src.source.Confirm(pos)
	select {
	case f.room <- struct{}{}:
	default:
	}
}
