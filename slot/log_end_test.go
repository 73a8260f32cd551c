package slot

import (
	"testing"

	"github.com/walrelay/walrelay/event"
)

func TestLogEndIsNeverBehindAPagesHeader(t *testing.T) {
	t.Parallel()
	const page, segment = 8192, 16 << 20
	for at, want := range map[event.LSN]event.LSN{
		3*segment + 5*page + shortPageHeader: 3*segment + 5*page,
		3*segment + longPageHeader:           3 * segment,
		3*segment + shortPageHeader:          3*segment + shortPageHeader, // inside the long header: cannot be, and is left alone
		3*segment + 5*page + longPageHeader:  3*segment + 5*page + longPageHeader,
		3*segment + 5*page + 100:             3*segment + 5*page + 100,
		3 * segment:                          3 * segment,
	} {
		if got := beforeHeader(at, page, segment); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}
