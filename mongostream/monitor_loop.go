package mongostream

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// watch reports lag and room on a timer, apart from the loops that must not wait for the
// answers: positions and leases are the keeper's.
func (s *Stream) watch(ctx context.Context) {
	var m Monitor
	for {
		select {
		case <-time.After(s.opt.CheckInterval):
		case <-s.closed:
			return
		case <-ctx.Done():
			return
		}
		if s.opt.writesRecord() && !s.reigns() {
			m = Monitor{} // the one that reads reports
			continue
		}
		s.look(ctx, &m)
	}
}

func (s *Stream) look(ctx context.Context, m *Monitor) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.WireTimeout)
	defer cancel()
	client, err := s.connect(ctx)
	if err != nil {
		return // the pump says so
	}
	var confirmed bson.Timestamp
	if saved := s.saved.Load(); saved != nil {
		confirmed = tokenTime(*saved)
	}
	received := s.received.Load()
	r, err := m.Report(ctx, client, bson.Timestamp{T: uint32(received >> 32), I: uint32(received)}, confirmed)
	if err != nil {
		return // so says the pump, or it passes
	}
	if s.obs.Lag != nil {
		s.obs.Lag(r)
	}
	for key, c := range Warnings(r) {
		s.warn(key, c)
	}
}
