package outbox

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
)

// foreignCalm is how long a foreign poller must not have been seen before the
// warning of it is taken back.
const foreignCalm = 5 * time.Minute

// foreign is what was seen of somebody else who publishes the same rows.
type foreign struct {
	seen time.Time // zero: nobody
	rows int
}

// watch looks at what marks met. Rows that turned processing without us, or that
// were published or failed before our mark, were worked on by a poller of the application:
// whatever it publishes comes twice.
func (f *foreign) watch(t Table, m Marked, now time.Time) (c event.Condition, changed bool) {
	switch n := m.Foreign + m.Settled; {
	case n > 0:
		f.seen, f.rows = now, f.rows+n
		return event.Condition{
			What: fmt.Sprintf("%d rows of %s were claimed or settled by somebody else before walrelay could mark them: another poller publishes the same events",
				f.rows, t.Relation()),
			Remedy: "stop the other poller, or this relay: events are published twice, and out of order",
			Anchor: "foreign-poller",
		}, true
	case !f.seen.IsZero() && now.Sub(f.seen) > foreignCalm:
		*f = foreign{}
		return event.Condition{}, true
	}
	return event.Condition{}, false
}
