package forze

// A forze poller, as plain SQL, that works on the same table.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/router"
	"github.com/walrelay/walrelay/test/pgserver"
)

// peer is a forze poller of one route: claim, publish one after the other, mark.
type peer struct {
	stop chan struct{}
	done chan error
	sent []string
}

func (d *database) peer(limit int) *peer {
	p := &peer{stop: make(chan struct{}), done: make(chan error, 1)}
	conn := d.pg.Conn(d.t, d.name)
	go func() {
		p.done <- func() error {
			for {
				select {
				case <-p.stop:
					return nil
				default:
				}
				ids, err := column(conn, forzeClaim, "orders", limit)
				if err != nil {
					return err
				}
				p.sent = append(p.sent, ids...)
				tag, err := conn.Exec(context.Background(), forzePublished, ids)
				if err != nil {
					return err
				}
				if tag.RowsAffected() != int64(len(ids)) {
					return fmt.Errorf("%d of %d rows were still its own at the mark", tag.RowsAffected(), len(ids))
				}
			}
		}()
	}()
	return p
}

// end stops it and answers what it published.
func (p *peer) end(t *testing.T) []string {
	t.Helper()
	close(p.stop)
	if err := <-p.done; err != nil {
		t.Fatal(err)
	}
	return p.sent
}

// With claim: row a relay and forze pollers share a table: each row is claimed by one, published
// once, and ends published, while writers go on.
func TestForzePollersBesideTheRelayLoseAndDoubleNothing(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		peers := []*peer{d.peer(7), d.peer(13)}
		p := d.poll(acknowledge, setting{
			opt: outbox.Options{Batch: 20, Interval: 10 * time.Millisecond}, routes: []router.Route{{Match: "*", Loose: true}},
		})
		var ids []string
		for range 60 {
			ids = append(ids, d.flush(many(25, "")...)...)
		}
		d.becomes(fmt.Sprintf("published %d", len(ids)), states)
		ours := p.deliveries()
		p.mustStop(t)
		theirs := slices.Concat(peers[0].end(t), peers[1].end(t))
		all := slices.Concat(ours, theirs)
		slices.Sort(all)
		slices.Sort(ids)
		same(t, "rows that were published by anybody", all, ids)
		if len(ours) == 0 || len(theirs) == 0 {
			t.Errorf("%d rows by the relay, %d by the peers: there was no contest", len(ours), len(theirs))
		}
		if lost := p.lost; lost > 0 {
			t.Errorf("%d claims were lost", lost)
		}
		for _, id := range ids {
			d.isPublished(id)
		}
	})
}

// A row that a forze poller has in its hands holds its key: later rows of it wait, others flow; they
// go once it is published.
func TestRowInAForzePollersHandsHoldsItsKey(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		ids := d.flush(given{key: "k"}, given{key: "k"}, given{key: "other"})
		taken, err := column(d.pg.Conn(t, d.name), forzeClaim, "orders", 1)
		if err != nil || !slices.Equal(taken, ids[:1]) {
			t.Fatalf("the forze poller claimed %v, %v; want the first row", taken, err)
		}
		p := d.poll(acknowledge, setting{})
		d.becomes("published", `select status from public.outbox where id = $1::uuid`, ids[2])
		p.saw("an empty claim", func() bool { return slices.Contains(p.claims, 0) })
		d.is(ids[1], changes{})
		d.exec(forzePublished, taken)
		d.becomes("published 3", states)
		p.mustStop(t)
		same(t, "deliveries", p.deliveries(), []string{ids[2], ids[1]})
		for _, id := range ids {
			d.isPublished(id)
		}
	})
}

// Marks are fenced: what a forze poller took away meanwhile, and settled, stays as it left it, and
// the relay says that the claim was lost.
func TestOutcomeOfALostClaimChangesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		d := newDatabase(t, v)
		reached, open := make(chan struct{}), make(chan struct{})
		id := d.flush(given{key: "k"})[0]
		p := d.poll(func(ctx context.Context, _ *event.Record, _ int) error {
			close(reached)
			select {
			case <-open:
			case <-ctx.Done():
			}
			return nil
		}, setting{})
		<-reached
		// What forze's reclaim by a clock that is ahead, its claim and a failure come to.
		d.exec(`update public.outbox set status = 'failed', last_error = 'theirs', processing_at = '2026-01-01 00:00+00'`)
		close(open)
		p.saw("a lost claim", func() bool { return p.lost == 1 })
		p.mustStop(t)
		d.is(id, changes{"status": "failed", "last_error": "theirs", "processing_at": "2026-01-01T00:00:00+00:00"})
	})
}

// Beside the log a forze poller publishes everything a second time: the relay counts it and
// says so. A row in the poller's hands becomes published by our mark, unless its key is held
// back: then the poller ends its work, and the key is free again.
func TestForzePollerBesideTheLogIsSaid(t *testing.T) {
	onEach(t, func(t *testing.T, v pgserver.Version) {
		for _, holdBack := range []bool{false, true} {
			t.Run(fmt.Sprintf("hold_back %v", holdBack), func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, v, byLog, fmt.Sprintf("hold_back: %v", holdBack))
				r := h.start(t)
				// One for the start: below the start line the relay leaves claimed rows alone.
				h.flush(given{key: "first"})
				h.becomes("published 1", states)
				r.Signal(syscall.SIGSTOP) // so that it is not the first
				ids := h.flush(many(4, "")...)
				taken, err := column(h.PG.Conn(t, h.Database), forzeClaim, "orders", 4)
				if err != nil || len(taken) != 4 {
					t.Fatal(taken, err)
				}
				h.exec(forzePublished, ids[:2]) // two are settled before our mark, two are in its hands
				settled := h.now()
				r.Signal(syscall.SIGCONT)
				status := func(want func(ops.SourceStatus) bool) {
					t.Helper()
					r.Eventually("the status", soon, func() error {
						st, err := r.Status()
						if err == nil && !want(st.Sources[0]) {
							err = fmt.Errorf("%+v, %+v", st.Sources[0].Warnings, st.Sources[0].Table)
						}
						return err
					})
				}
				status(func(s ops.SourceStatus) bool {
					return len(s.Warnings) == 1 && strings.Contains(s.Warnings[0].What, "another poller publishes the same events") &&
						s.Warnings[0].Anchor == "foreign-poller"
				})
				r.Eventually("the runbook's section in the log", soon, func() error {
					if !strings.Contains(r.Log(), "foreign-poller") {
						return errors.New("it is not named")
					}
					return nil
				})
				if holdBack {
					h.exec(forzePublished, ids[2:])
				}
				h.becomes("published 5", states)
				status(func(s ops.SourceStatus) bool {
					m := s.Table.Marks
					return s.Table.HeldKeys == 0 && m.Settled >= 2 && (holdBack || m.Settled == 2 && m.Foreign == 2)
				})
				r.WaitReady(soon) // it is a warning, nothing stops
				stop(t, r)
				for i, id := range ids {
					if i < 2 {
						h.isPublished(id, changes{"published_at": span{settled.Add(-time.Minute), settled}}) // as the other left it
					} else {
						h.isPublished(id)
					}
				}
			})
		}
	})
}
