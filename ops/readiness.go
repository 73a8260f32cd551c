package ops

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// Anchors of docs/runbook.md that ops itself points at.
const (
	AnchorStuck       event.Anchor = "loop-stuck"
	AnchorSlotLost    event.Anchor = "slot-lost"
	AnchorSlotWAL     event.Anchor = "slot-wal"
	AnchorCertificate event.Anchor = "certificate-expiry"
	AnchorListen      event.Anchor = "http-listen"
	AnchorLog         event.Anchor = "log-settings"
)

// maxListed bounds the lists of reasons in answers.
const maxListed = 50

// certificateNotice is how long before its end a certificate is warned of.
const certificateNotice = 14 * 24 * time.Hour

// Readiness is the answer of /readyz.
type Readiness struct {
	Ready   bool              `json:"ready"`
	Sources []SourceReadiness `json:"sources"`
	// Broker lists the first 50 reasons on the broker's side; BrokerReasons counts all.
	Broker        []BrokerReason `json:"broker"`
	BrokerReasons int            `json:"broker_reasons"`
	// Process holds reasons that belong to no source: no source yet, a stuck loop.
	Process []event.Condition `json:"process"`
	// Warnings do not make the relay unready.
	Warnings []event.Condition `json:"warnings"`
}

// SourceReadiness is one source's part.
type SourceReadiness struct {
	Name     string            `json:"name"`
	State    event.State       `json:"state"`
	Ready    bool              `json:"ready"`
	Reasons  []event.Condition `json:"reasons"`
	Warnings []event.Condition `json:"warnings"`
}

// BrokerReason is one reason on the broker's side, with the key it stands under.
type BrokerReason struct {
	Key string `json:"key"`
	event.Condition
}

// Readiness asks whether events flow, or would if there were any. It reads the
// probes now, so it is as fresh as what the rooms know.
//
// A standby is ready: it does its duty, and a rolling update that waits for the
// new process to be ready must not wait for the old one to leave.
func (o *Ops) Readiness() Readiness {
	r := Readiness{Sources: []SourceReadiness{}, Process: []event.Condition{}, Warnings: []event.Condition{}}
	for _, l := range o.Health().Loops {
		if !l.Live {
			r.Process = append(r.Process, event.Condition{
				What:   fmt.Sprintf("loop %s made no step for %.0f s, it may be silent for %.0f s", l.Name, l.AgeSeconds, l.MaxAgeSeconds),
				Remedy: "keep the goroutine dump (signal QUIT) and restart the relay",
				Anchor: AnchorStuck,
			})
		}
	}
	sources := o.sources()
	if len(sources) == 0 {
		r.Process = append(r.Process, event.Condition{What: "the relay is starting: no source is set up yet"})
	}
	r.Ready = len(r.Process) == 0
	for _, s := range sources {
		sr := s.readiness()
		r.Ready = r.Ready && sr.Ready
		r.Sources = append(r.Sources, sr)
	}
	r.Broker, r.BrokerReasons = o.broker.conditions(maxListed)
	r.Ready = r.Ready && r.BrokerReasons == 0
	r.Warnings = append(r.Warnings, o.warnings()...)
	return r
}

func (s *Source) readiness() SourceReadiness {
	state, cond := s.state()
	cond = s.ops.redactCondition(cond)
	r := SourceReadiness{Name: s.name, State: state, Reasons: []event.Condition{}, Warnings: []event.Condition{}}
	switch {
	case cond.What != "" && state == event.StateStandby:
		r.Warnings = append(r.Warnings, cond)
	case cond.What != "":
		r.Reasons = append(r.Reasons, cond)
	case state != event.StateStreaming && state != event.StateStandby:
		r.Reasons = append(r.Reasons, event.Condition{What: "the source is " + string(state)})
	}
	lost, warnings := judgeSlot(s.slot.Load())
	r.Reasons = append(r.Reasons, lost...)
	r.Warnings = append(append(r.Warnings, warnings...), s.standing()...)
	r.Ready = len(r.Reasons) == 0
	return r
}

func (o *Ops) warnings() []event.Condition {
	now := o.clock()
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []event.Condition
	for _, w := range o.mu.warnings {
		list = append(list, o.redactCondition(w))
	}
	for name, end := range o.mu.certificates {
		if left := end.Sub(now); left < certificateNotice {
			list = append(list, event.Condition{
				What:   fmt.Sprintf("certificate %s is valid until %s: %.1f days", name, end.UTC().Format(time.RFC3339), left.Hours()/24),
				Remedy: "renew the files; they are read again at the next connection",
				Anchor: AnchorCertificate,
			})
		}
	}
	return list
}
