package postgres

import (
	"testing"

	"github.com/walrelay/walrelay/event"
)

func TestATransactionIsSeenOnceItsSnapshotSaysSo(t *testing.T) {
	t.Parallel()
	const epoch = 1 << 32
	for _, c := range []struct {
		snapshot string
		xid      uint32
		want     bool
	}{
		{"100:105:", 99, true},
		{"100:105:100,103", 100, false},
		{"100:105:100,103", 102, true},
		{"100:105:100,103", 103, false},
		{"100:105:100,103", 105, false}, // begun after the snapshot
		{"100:105:100,103", 0, true},
		{"4294967300:4294967310:4294967301", 5, false},         // 4294967301
		{"4294967300:4294967310:4294967301", 6, true},          // 4294967302
		{"4294967300:4294967310:", 4294967290, true},           // of the epoch before
		{"4294967290:4294967295:", 3, false},                   // of the epoch to come
		{"8589934600:8589934610:8589934601", 4294967295, true}, // of the epoch before, two epochs on
		{"8589934600:8589934610:8589934601", 8589934601 - 2*epoch, false},
	} {
		s, err := parseSnapshot(c.snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.sees(c.xid); got != c.want {
			t.Errorf("%s sees %d: %v, want %v", c.snapshot, c.xid, got, c.want)
		}
	}
	for _, bad := range []string{"", "1:2", "a:2:", "1:b:", "1:2:c"} {
		if _, err := parseSnapshot(bad); err == nil {
			t.Errorf("snapshot %q was read", bad)
		}
	}
}

func TestTheEndOfTheLogIsWhereARecordCanEnd(t *testing.T) {
	t.Parallel()
	const block, segment = 8192, 16 << 20
	for _, c := range []struct{ insert, want event.LSN }{
		{8192*5 + 24, 8192 * 5},       // behind a page's header
		{8192*5 + 32, 8192*5 + 32},    // a record's last bytes stand there
		{8192*5 + 40, 8192*5 + 40},    // here too: only a segment's first page has the long header
		{segment*3 + 40, segment * 3}, // behind a segment's header
		{segment*3 + 48, segment*3 + 48},
		{segment*3 + 24, segment*3 + 24}, // no place that the server would name
		{8192*5 + 4096, 8192*5 + 4096},
		{8192 * 5, 8192 * 5},
	} {
		if got := lastEnd(c.insert, block, segment); got != c.want {
			t.Errorf("%s: %s, want %s", c.insert, got, c.want)
		}
	}
}
