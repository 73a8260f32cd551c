package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/inbox"
	"github.com/walrelay/walrelay/inbox/postgres"
	"github.com/walrelay/walrelay/test/pgserver"
)

func pay(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
	_, err := tx.Exec(ctx, `insert into payments values ($1, $2)`, m.ID, m.Identity.Execution)
	return err
}

// The inbox battery (F) of the forze contract; F5 to F7 as far as no database is
// needed are in package inbox.
func TestSecondDeliveryIsSkippedAndMovesNoClock(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		wall := time.UnixMilli(1_700_000_000_000)
		clock := hlc.New(func() time.Time { return wall }, 0)
		in := h.inbox(inbox.Options{Clock: clock}, postgres.Options{})
		const stamp = "001700000001000.00003"
		got, err := in.Process(t.Context(), h.pool, published(1, 10, "forze_hlc", stamp), func(ctx context.Context, tx pgx.Tx, m inbox.Message) error {
			if now := clock.Now(); now.String() <= stamp {
				t.Errorf("reaction at %s to an event at %s", now, stamp)
			}
			return pay(ctx, tx, m)
		})
		is(t, "first", inbox.Handled, got, err)
		before := clock.Last()
		// The same place again, the same event at another place, and one that brings a later stamp.
		for _, r := range []inbox.Record{
			published(1, 10, "forze_hlc", stamp), published(1, 11, "forze_hlc", stamp), published(1, 12, "forze_hlc", "001700000002000.00000"),
		} {
			got, err := in.Process(t.Context(), h.pool, r, pay)
			is(t, r.Place(), inbox.Duplicate, got, err)
		}
		if clock.Last() != before {
			t.Errorf("duplicates moved the clock from %s to %s", before, clock.Last())
		}
		h.holds(1, 1)
	})
}

func TestRecordsWithoutIDsAreKnownByTheirPlace(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		at := func(offset int64) inbox.Record {
			return inbox.Record{Topic: "orders", Partition: 1, Offset: offset, Key: []byte("order-1")}
		}
		for _, c := range []struct {
			r    inbox.Record
			want inbox.Outcome
		}{{at(1), inbox.Handled}, {at(2), inbox.Handled}, {at(1), inbox.Duplicate}} {
			got, err := in.Process(t.Context(), h.pool, c.r, pay)
			is(t, c.r.Place(), c.want, got, err)
		}
		if _, err := in.Process(t.Context(), h.pool, inbox.Record{Key: []byte("order-1")}, pay); !errors.Is(err, inbox.ErrNoID) {
			t.Errorf("a key alone: %v", err)
		}
		h.holds(2, 2)
	})
}

func TestRoutesAreReadersOfTheirOwn(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		for _, route := range []string{"payments", "mails"} {
			in := h.inbox(inbox.Options{Route: route}, postgres.Options{})
			got, err := in.Process(t.Context(), h.pool, published(1, 1), pay)
			is(t, route, inbox.Handled, got, err)
		}
		if n := h.count(`select count(*) from inbox where message_id = $1 and inbox_route in ('payments', 'mails') and processed_at between now() - interval '1 minute' and now()`, eventID(1)); n != 2 {
			t.Errorf("%d marks as the contract wants them", n)
		}
	})
}

func TestEventsOfOtherPresetsAreKnownByTheirHeader(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{EventIDHeader: inbox.HeaderID}, postgres.Options{})
		for offset, want := range []inbox.Outcome{inbox.Handled, inbox.Duplicate} {
			r := inbox.Record{Topic: "outbox.event.orders", Offset: int64(offset), Headers: []inbox.Header{{Key: "id", Value: []byte(eventID(1))}}}
			got, err := in.Process(t.Context(), h.pool, r, pay)
			is(t, r.Place(), want, got, err)
		}
		h.holds(1, 1)
	})
}

func TestUnusableIDIsAnErrorAndNoMark(t *testing.T) {
	onEach(t, func(t *testing.T, pg *pgserver.Server) {
		h := newHouse(t, pg)
		in := h.inbox(inbox.Options{}, postgres.Options{})
		for _, id := range []string{"a\x00b", "\xff", string(make([]byte, 2000))} {
			r := inbox.Record{Topic: "orders", Headers: []inbox.Header{{Key: "forze_event_id", Value: []byte(id)}}}
			if _, err := in.Process(t.Context(), h.pool, r, pay); !errors.Is(err, inbox.ErrBadID) {
				t.Errorf("id %.10q: %v", id, err)
			}
		}
		h.holds(0, 0)
	})
}
