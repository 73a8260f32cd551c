package postgres

import (
	"maps"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestParkedEventsAreCountedByStateAndForThisSourceAlone(t *testing.T) {
	t.Parallel()
	l := newLot(t, pgserver.Shared(t, pgserver.V16), event.Forze, forzeTable, nil)
	l.park(message(1, "a"), message(2, "b"), message(3, "c"))
	l.leave(message(4, "a"))
	list, err := l.k.List(l.ctx(), outbox.ParkedFilter{Key: "c"})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	if n, err := l.k.Retry(l.ctx(), []int64{list[0].ID}); err != nil || n != 1 {
		t.Fatalf("%d retried: %v", n, err)
	}
	if _, err := l.conn.Exec(l.ctx(), `insert into walrelay.parked (owner, state, event_id, route, key, topic, reason, error)
		values ('another', 'parked', 'e', 'r', 'k', 't', '', '')`); err != nil {
		t.Fatal(err)
	}
	got, err := l.k.Counts(l.ctx())
	want := map[outbox.ParkState]int64{outbox.StateParked: 2, outbox.StateBehind: 1, outbox.StateRetrying: 1}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
}
