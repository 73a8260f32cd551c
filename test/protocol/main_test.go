package protocol

import (
	"flag"
	"testing"

	"github.com/walrelay/walrelay/test/pgserver"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// These tests wait much and compute little: more of them than there are cores
	// may run at once.
	_ = flag.Set("test.parallel", "12")
	pgserver.Main(m)
}

// everyVersion runs f on a server of each version that other tests share.
func everyVersion(t *testing.T, f func(t *testing.T, srv *pgserver.Server)) {
	t.Parallel()
	for _, v := range pgserver.Versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			f(t, pgserver.Shared(t, v))
		})
	}
}

// everyVersionAlone runs f on servers of its own, for facts about places in the
// log: nobody else writes there.
func everyVersionAlone(t *testing.T, f func(t *testing.T, srv *pgserver.Server)) {
	t.Parallel()
	for _, v := range pgserver.Versions {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			f(t, pgserver.Start(t, pgserver.Options{Version: v, Settings: map[string]string{"autovacuum": "off"}}))
		})
	}
}
