package router

import (
	"strconv"

	"github.com/walrelay/walrelay/event"
)

// appendPosition writes source:position:ordinal, for instance
// orders:16/B374D848:3. Read it from the right: a source's name may hold a colon.
func (r *Router) appendPosition(dst []byte, ev *event.Event) []byte {
	dst = append(dst, r.source...)
	dst = append(dst, ':')
	if ev.Commit.Token != "" {
		dst = append(dst, ev.Commit.Token...)
	} else {
		dst, _ = ev.Commit.LSN.AppendText(dst) // never fails
	}
	dst = append(dst, ':')
	return strconv.AppendUint(dst, uint64(ev.Ordinal), 10)
}
