package inbox

import (
	"errors"
	"fmt"

	"github.com/walrelay/walrelay/hlc"
)

// ErrMalformedStamp: the header forze_hlc is not a stamp.
var ErrMalformedStamp = errors.New("the header " + HeaderStamp + " is not a stamp")

// merge brings the event's stamp into the clock. Nothing that stands in a header
// can keep an event from being handled, so there is no error.
func (in *Inbox) merge(m *Message) {
	if in.opts.Clock == nil || *m.merged {
		return
	}
	*m.merged = true
	text, ok := m.Header(HeaderStamp)
	if !ok {
		return
	}
	stamp, err := hlc.Parse(text)
	if err != nil {
		in.counts.malformed.Add(1)
		in.refuse(m, fmt.Errorf("%w: %w", ErrMalformedStamp, err))
		return
	}
	if _, err := in.opts.Clock.Observe(stamp); err != nil {
		in.counts.refused.Add(1)
		in.refuse(m, err)
		return
	}
	in.counts.merged.Add(1)
}

func (in *Inbox) refuse(m *Message, err error) {
	if in.opts.OnRefused != nil {
		in.opts.OnRefused(*m, err)
	}
}
