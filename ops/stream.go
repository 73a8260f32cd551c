package ops

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// StreamReport takes what the server says of its oplog and of the stream's place in it.
func (s *Source) StreamReport(r event.StreamReport) {
	s.streamTaken.Store(int64(s.ops.clock().Sub(s.ops.started)))
	s.stream.Store(&r)
}

func (s *Source) streamAge() time.Duration {
	return max(s.ops.clock().Sub(s.ops.started)-time.Duration(s.streamTaken.Load()), 0)
}

// clusterTimes: the ladder's positions are cluster times, seconds in the upper half and an
// increment in the lower.
func (s *Source) clusterTimes() bool { return s.probes.Load().ClusterTimes }

func clusterSeconds(p event.LSN) int64 { return int64(p >> 32) }

// clusterText prints a cluster time for people.
func clusterText(p event.LSN) string {
	return fmt.Sprintf("%s.%d", time.Unix(clusterSeconds(p), 0).UTC().Format(time.RFC3339), uint32(p))
}

// positionText prints a rung of the ladder for people.
func (s *Source) positionText(p event.LSN) string {
	if s.clusterTimes() {
		return clusterText(p)
	}
	return p.String()
}

func (s *Source) collectStream(e emitter) {
	r := s.stream.Load()
	if r == nil {
		return
	}
	for _, f := range []struct {
		metric *Metric
		value  time.Duration
	}{
		{metricStreamLag, r.StreamLag},
		{metricCheckpointLag, r.CheckpointLag},
		{metricMajorityLag, r.MajorityLag},
		{metricOplogWindow, r.OplogWindow},
		{metricHeadroom, r.Headroom},
		{metricHeadroomETA, r.HeadroomETA},
	} {
		if f.value != event.Unmeasured {
			e.put(f.metric, f.value.Seconds(), s.name)
		}
	}
	e.put(metricClockOffset, r.ClockOffset.Seconds(), s.name)
	e.put(metricStreamAge, s.streamAge().Seconds(), s.name)
}

// StreamStatus is what the server said of its oplog and of the stream's place in it, and how long
// ago. A figure that it does not tell, or not to this user, is absent.
type StreamStatus struct {
	Primary              string   `json:"primary,omitempty"`
	StreamLagSeconds     *float64 `json:"stream_lag_seconds,omitempty"`
	CheckpointLagSeconds *float64 `json:"checkpoint_lag_seconds,omitempty"`
	MajorityLagSeconds   *float64 `json:"majority_lag_seconds,omitempty"`
	OplogWindowSeconds   *float64 `json:"oplog_window_seconds,omitempty"`
	HeadroomSeconds      *float64 `json:"headroom_seconds,omitempty"`
	HeadroomETASeconds   *float64 `json:"headroom_eta_seconds,omitempty"`
	ClockOffsetSeconds   float64  `json:"clock_offset_seconds"`
	AgeSeconds           float64  `json:"age_seconds"`
}

func (s *Source) streamStatus() *StreamStatus {
	r := s.stream.Load()
	if r == nil {
		return nil
	}
	figure := func(d time.Duration) *float64 {
		if d == event.Unmeasured {
			return nil
		}
		return new(d.Seconds())
	}
	return &StreamStatus{
		Primary: r.Member, StreamLagSeconds: figure(r.StreamLag), CheckpointLagSeconds: figure(r.CheckpointLag),
		MajorityLagSeconds: figure(r.MajorityLag), OplogWindowSeconds: figure(r.OplogWindow),
		HeadroomSeconds: figure(r.Headroom), HeadroomETASeconds: figure(r.HeadroomETA),
		ClockOffsetSeconds: r.ClockOffset.Seconds(), AgeSeconds: s.streamAge().Seconds(),
	}
}
