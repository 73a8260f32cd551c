package cases

// C14 Partitioned outbox.
// Source: Trendyol/go-pq-cdc#101 and #100, DBZ-9158.
// Ideal: rows of all leaves are delivered, or start-up refuses the setting by
// name; a partition added later needs no restart.

import (
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// partitioned makes the outbox with partitions by month and the publication as
// the test wants it. The writer spreads its rows over the months in use.
func partitioned(t *testing.T, v pgserver.Version, k *kafkaserver.Server, publication string) (*rig.House, *ledger) {
	t.Helper()
	h := rig.NewHouse(t, pgserver.Shared(t, v), k.Brokers(), k.Topic(t, 3, nil))
	table := outboxTable("id", "uuid not null", "created_at", "timestamptz not null")
	h.Exec(t, table+" partition by range (created_at)")
	for _, month := range []string{"08", "09"} {
		addMonth(t, h, month)
	}
	if publication != "" {
		h.Exec(t, "create publication "+h.Publication+" "+publication)
	}
	l := newLedger(h)
	inMonths(l, "'2026-08-15', '2026-09-15'")
	return h, l
}

func addMonth(t *testing.T, h *rig.House, month string) {
	t.Helper()
	h.Exec(t, "create table outbox_2026_"+month+" partition of outbox for values from ('2026-"+month+"-01') to ('2026-"+month+"-28')")
}

func inMonths(l *ledger, days string) {
	days = "(array[" + days + "]::timestamptz[])"
	l.insert = strings.Replace(forzeInsert, "'pending', now(), now()", "'pending', now(), "+days+"[1 + n % array_length("+days+", 1)]", 1)
}

func TestC14EveryPartitionIsDeliveredAlsoOneAddedLater(t *testing.T) {
	t.Parallel()
	publications := map[string]string{
		"made by init": "",
		"of the root":  "for table outbox with (publish = 'insert', publish_via_partition_root = true)",
		"of all":       "for all tables with (publish_via_partition_root = true)",
	}
	for name, publication := range publications {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, v pgserver.Version) {
				k := kafkaserver.Shared(t)
				h, l := partitioned(t, v, k, publication)
				h.Init(t)
				r := h.Start(t)
				r.WaitReady(readyWithin)
				l.write(t, "a", "b", "a", "c")
				addMonth(t, h, "10")
				inMonths(l, "'2026-10-15', '2026-08-15'")
				l.write(t, "a", "b", "a", "c")
				l.drained(t, 30*time.Second)
				l.judge(t, k.Consume(t, h.Topic), 0)
				r.WaitReady(readyWithin) // a partition more is no change of the publication
				// One that was a table of its own before, with rows in the log under its own name.
				h.Exec(t, "create table outbox_2026_11 (like outbox including all)")
				h.Exec(t, "alter table outbox attach partition outbox_2026_11 for values from ('2026-11-01') to ('2026-11-28')")
				inMonths(l, "'2026-11-15'")
				l.write(t, "a", "b")
				h.Exec(t, "alter table outbox detach partition outbox_2026_08")
				l.write(t, "a", "b")
				l.drained(t, 30*time.Second)
				l.judge(t, k.Consume(t, h.Topic), 0)
				stopsClean(t, r)
			})
		})
	}
}

func TestC14PublicationOfTheLeavesIsRefusedByName(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, v pgserver.Version) {
		k := kafkaserver.Shared(t)
		h, l := partitioned(t, v, k, "for table outbox with (publish = 'insert')")
		out, code := h.Command(t, "init")
		if code != 3 {
			t.Errorf("init exited %d, want 3", code)
		}
		contains(t, "init", out, h.Publication, "public.outbox", "publish_via_partition_root")
		// Set up well and spoilt later, it is refused at the start.
		h.Exec(t, "alter publication "+h.Publication+" set (publish_via_partition_root = true)")
		h.Init(t)
		h.Exec(t, "alter publication "+h.Publication+" set (publish_via_partition_root = false)")
		before := h.ReadSlot(t)
		l.write(t, "a", "b")
		r := h.Start(t)
		reason := r.WaitNotReady(30*time.Second, "publish_via_partition_root")
		contains(t, "/readyz", reason, h.Publication, "public.outbox")
		if after := h.ReadSlot(t); after.Confirmed != before.Confirmed {
			t.Errorf("the slot was at %s and is at %s", before.Confirmed, after.Confirmed)
		}
		if n := len(k.Consume(t, h.Topic)); n != 0 {
			t.Errorf("%d records came", n)
		}
	})
}
