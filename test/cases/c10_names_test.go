package cases

// C10 Upper case, hyphen, reserved words in names.
// Source: ClickHouse/ClickHouse#107423, lukashes/outboxx#91,
// opensearch-project/data-prepper#7077, olucasandrade/kaptanto#56.
// Ideal: names work identically on first and later starts; a dot or a quote in a
// name is no separator; an impossible slot name is refused with the alphabet.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC10StrangeNamesWorkOnTheFirstStartAndOnLaterOnes(t *testing.T) {
	t.Parallel()
	names := []struct{ schema, table, publication string }{
		{"Sales-EU", "Outbox.Order", "MyPub"},
		{`we"ird.`, `Out"box.""Order`, `My-Pub."x"`},
		{"select", "table", "order, by"},
		{"Größe", "a'b", `it's "mine"`},
	}
	for i, n := range names {
		t.Run(fmt.Sprintf("names %d", i), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) {
				k := kafkaserver.Shared(t)
				h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 3, nil))
				table := pgx.Identifier{n.schema, n.table}.Sanitize()
				h.Publication = n.publication
				h.Postgres = fmt.Sprintf("tables: [%s]", yamlText(table))
				h.Exec(t, "create schema "+pgx.Identifier{n.schema}.Sanitize())
				h.Init(t)
				l := newLedger(h)
				l.insert = strings.Replace(forzeInsert, "public.outbox", table, 1)
				for range 3 {
					// init is run again too, as deployments do.
					h.Init(t)
					r := h.Start(t)
					r.WaitReady(readyWithin)
					l.write(t, "a", "b")
					l.drained(t, 30*time.Second)
					stopsClean(t, r)
					l.judge(t, k.Consume(t, h.Topic), 0)
				}
			})
		})
	}
}

// yamlText quotes a text for YAML.
func yamlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func TestC10ImpossibleSlotNameIsRefusedWithTheAlphabet(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), "unused")
	for _, name := range []string{"MySlot", "my-slot", `"my slot"`, "größe"} {
		h.Slot = name
		for _, command := range []string{"config", "init", "check", "run"} {
			out, code := h.Command(t, command)
			if code != 2 {
				t.Errorf("walrelay %s with the slot %s exited %d, want 2", command, name, code)
			}
			contains(t, "walrelay "+command, out, strings.Trim(name, `"`), "a-z", "_")
		}
	}
	h.Slot = "unused"
}
