package badinput

import (
	"testing"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// TestUnfitTableIsRefusedByTableAndColumn covers what is wrong before the first
// event; what changes under a running relay is C13.
func TestUnfitTableIsRefusedByTableAndColumn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    string
		tables string
		words  []string
	}{
		"no route column":   {`alter table outbox drop column outbox_route`, "public.outbox", []string{"public.outbox", "outbox_route"}},
		"no payload column": {`alter table outbox drop column payload`, "public.outbox", []string{"public.outbox", "payload"}},
		"misspelt column":   {`alter table outbox rename event_id to eventid`, "public.outbox", []string{"public.outbox", "event_id"}},
		"misspelt table":    {`select 1`, "public.outbxo", []string{"public.outbxo"}},
		"a view":            {`create view looked_at as select * from outbox`, "public.looked_at", []string{"public.looked_at", "is not a table"}},
		"an unlogged table": {`alter table outbox set unlogged`, "public.outbox", []string{"public.outbox", "unlogged"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kafkaserver.Shared(t)
			h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), k.Topic(t, 1, nil))
			looseTable(t, h)
			h.Exec(t, c.sql)
			h.Postgres = "tables: [" + c.tables + "]"
			for _, command := range [][]string{{"check"}, {"run", "--exit-on-halt"}} {
				out, code := h.Command(t, command...)
				if code != exitPrecondition {
					t.Errorf("%s exited %d, want %d", command[0], code, exitPrecondition)
				}
				if command[0] == "check" {
					contains(t, command[0], out, c.words...)
				}
			}
		})
	}
}
