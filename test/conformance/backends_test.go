package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/pgserver"
)

func TestMain(m *testing.M) {
	defer pgserver.StopShared()
	mongoserver.Main(m)
}

// options are what a source's configuration says of its table.
type options struct {
	lease  bool // claim: lease
	after  string
	last   bool // rows without a stamp come last, where there is a choice
	owner  string
	budget int
}

// parking is a store with its figures.
type parking interface {
	outbox.Parking
	Counts(ctx context.Context) (map[outbox.ParkState]int64, error)
}

// backend is one database with an outbox of the forze schema in it.
type backend interface {
	// open opens it once more, as another process would.
	open(t *testing.T, o options) (outbox.Table, outbox.Leases, parking)
	relation() string
	// id is the n-th row's, ascending with n.
	id(n int) string
	// at is the n-th position of its log.
	at(n int) event.Position
	// missingFirst says where rows without a stamp come.
	missingFirst(o options) bool

	// insert makes pending rows: see yard.
	insert(t *testing.T, from, to, keys int)
	// set writes fields of rows: text, an int, nil, or a [moment] by the server's clock.
	set(t *testing.T, rows []int, fields map[string]any)
	remove(t *testing.T, rows ...int)
	// read gives a row's fields: text, an int64, nil, or a time; nil where there is no such row.
	read(t *testing.T, n int) map[string]any
	// rows are the numbers of those that are there.
	rows(t *testing.T) []int
	now(t *testing.T) time.Time
	// age makes all that holder holds by lease that much older.
	age(t *testing.T, holder string, d time.Duration)
}

// moment is a time by the server's clock, from now.
type moment time.Duration

var backends = []struct {
	name string
	make func(t *testing.T) backend
}{
	{"pg15", func(t *testing.T) backend { return newPostgres(t, pgserver.V15) }},
	{"pg18", func(t *testing.T) backend { return newPostgres(t, pgserver.V18) }},
	{"mongo", func(t *testing.T) backend { return newMongo(t) }},
}

// everywhere tests a promise on every backend.
func everywhere(t *testing.T, o options, promise func(t *testing.T, y *yard)) {
	t.Parallel()
	for _, b := range backends {
		if broken && b.name != "mongo" {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			promise(t, newYard(t, b.make(t), o))
		})
	}
}
