package forze

import (
	"testing"

	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestMain(m *testing.M) { rig.Main(m, 10) }

// onEach runs body on the oldest and the newest Postgres, in parallel.
func onEach(t *testing.T, body func(*testing.T, pgserver.Version)) {
	t.Helper()
	t.Parallel()
	for _, v := range []pgserver.Version{pgserver.V15, pgserver.V18} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			body(t, v)
		})
	}
}
