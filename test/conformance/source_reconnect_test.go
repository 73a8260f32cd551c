package conformance

import "testing"

func TestLostConnectionIsTheSourcesOwnBusiness(t *testing.T) {
	everySource(t, func(t *testing.T, l ledger) {
		r := read(t, l)
		for round := range 4 {
			n := round * 10
			l.commit(t, span(n+1, n+5)...)
			r.want(span(n+1, n+5)...)
			l.commit(t, span(n+6, n+10)...)
			l.cut(t)
			r.want(span(n+6, n+10)...)
		}
	})
}
