package cases

// C26 Start-up preconditions
//
// Source: spiceai/spiceai#12114, risingwavelabs/risingwave#10653, agoodway/walex#58.
//
// Ideal: what is missing is said in one line with setting, current value and
// needed value, and by an exit code of its own; a relay that waits finds it by
// itself once it is there; failed starts leave no slots behind.
//
// The rights that only polling needs come with polling.

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const exitPrecondition = 3

// recoversWithin is one look of a halted relay for what was missing, every 15 s, and
// the start after it, on a busy machine.
const recoversWithin = 45 * time.Second

func TestC26WrongWALLevelIsNamedAndItsCureIsFound(t *testing.T) {
	t.Parallel()
	h, k := ownServer(t, map[string]string{"wal_level": "replica"})
	checkSays(t, h, "wal_level", "replica", "logical")
	exits(t, h, "wal_level is replica and must be logical")
	r := h.Start(t)
	r.WaitNotReady(soon, "wal_level is replica and must be logical")

	h.PG.Exec(t, "alter system set wal_level = logical")
	h.PG.Restart(t, pgserver.Fast)
	h.Init(t)
	arrives(t, h, k, r)
}

func TestC26NoFreeSlotIsNamedAndItsCureIsFound(t *testing.T) {
	t.Parallel()
	h, k := ownServer(t, map[string]string{"max_replication_slots": "1"})
	h.PG.Exec(t, "select pg_create_physical_replication_slot('other')")
	out, code := h.Command(t, "init")
	if code != exitPrecondition {
		t.Errorf("init exited %d, want %d", code, exitPrecondition)
	}
	contains(t, "init", out, "replication slots", "max_replication_slots")
	checkSays(t, h, "max_replication_slots", "1 of 1 in use", "one free")
	exits(t, h, "run 'walrelay init'")
	r := h.Start(t)
	r.WaitNotReady(soon, "run 'walrelay init'")

	h.PG.Exec(t, "select pg_drop_replication_slot('other')")
	h.Init(t)
	arrives(t, h, k, r)
}

func TestC26RoleWithoutReplicationIsNamedAndItsCureIsFound(t *testing.T) {
	t.Parallel()
	h, k := ownServer(t, nil)
	role, password := h.PG.NewRole(t, "")
	h.Postgres = "role: " + role
	h.Init(t)
	h.URL = h.PG.URLAs(role, password, h.Database)
	checkSays(t, h, "role", role+" without REPLICATION", "REPLICATION")
	exits(t, h, "role "+role+" may not replicate")
	r := h.Start(t)
	r.WaitNotReady(soon, "role "+role+" may not replicate")

	h.PG.Exec(t, "alter role "+role+" replication")
	arrives(t, h, k, r)
}

func TestC26NoFreeSenderIsNamedAndItsCureIsFound(t *testing.T) {
	t.Parallel()
	h, k := ownServer(t, map[string]string{"max_wal_senders": "1"})
	h.Init(t)
	ctx := context.Background()
	other, err := pgconn.Connect(ctx, h.PG.URL(h.Database)+"&replication=database")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close(ctx) })
	checkSays(t, h, "max_wal_senders", "1 of 1 in use", "one free")
	// No reason to give up, also with --exit-on-halt: the sender may be one that a
	// broken connection of ours left behind, and come free by itself.
	r := h.Start(t, "--exit-on-halt")
	contains(t, "/readyz", r.WaitNotReady(soon, "all WAL senders of the server are in use"), "max_wal_senders")

	_ = other.Close(ctx)
	arrives(t, h, k, r)
}

func TestC26MissingPublicationLeavesNoSlotsBehind(t *testing.T) {
	t.Parallel()
	h, k := ownServer(t, nil)
	forzeTable(t, h, "jsonb")
	checkSays(t, h, "publication "+h.Publication, "does not exist", "inserts of every table")
	for range 10 {
		exits(t, h, "run 'walrelay init'")
	}
	if n := slots(t, h); n != "0" {
		t.Errorf("%s slots after 10 failed starts, want none", n)
	}
	h.Init(t)
	h.Exec(t, `drop publication `+h.Publication)
	before := h.ReadSlot(t)
	for range 10 {
		exits(t, h, "publication "+h.Publication+" does not exist")
	}
	if n := slots(t, h); n != "1" {
		t.Errorf("%s slots after 10 failed starts, want the one that was there", n)
	}
	if now := h.ReadSlot(t); now.Confirmed != before.Confirmed {
		t.Errorf("failed starts moved the slot from %s to %s", before.Confirmed, now.Confirmed)
	}
	r := h.Start(t)
	r.WaitNotReady(soon, "publication "+h.Publication+" does not exist")

	// A slot cannot see a publication that is younger than itself: both are made anew.
	out, code := h.Command(t, "init", "--new-slot")
	if code != 0 {
		t.Fatalf("init --new-slot exited %d:\n%s", code, out)
	}
	arrives(t, h, k, r)
}

// ownServer is a house on a server of its own, not initialised.
func ownServer(t *testing.T, settings map[string]string) (*rig.House, *kafkaserver.Server) {
	t.Helper()
	k := kafkaserver.Shared(t)
	pg := pgserver.Start(t, pgserver.Options{Settings: settings})
	return rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 1, nil)), k
}

// checkSays wants one line of walrelay check that names a setting, what it is and
// what it has to be, and the exit code for a missing precondition.
func checkSays(t *testing.T, h *rig.House, setting, is, needs string) {
	t.Helper()
	out, code := h.Command(t, "check")
	if code != exitPrecondition {
		t.Errorf("check exited %d, want %d", code, exitPrecondition)
	}
	line := regexp.MustCompile(`(?m)^  FAIL ` + regexp.QuoteMeta(setting) + `: .*` + regexp.QuoteMeta(is) + `.* \(needs: .*` + regexp.QuoteMeta(needs) + `.*\)$`)
	if !line.MatchString(out) {
		t.Errorf("no line of check says that %s is %s and needs %s:\n%s", setting, is, needs, out)
	}
}

// exits wants run --exit-on-halt to end with the exit code for a missing precondition, and to say why.
func exits(t *testing.T, h *rig.House, text string) {
	t.Helper()
	out, code := h.Command(t, "run", "--log-format", "json", "--exit-on-halt")
	if code != exitPrecondition {
		t.Fatalf("run --exit-on-halt exited %d, want %d:\n%s", code, exitPrecondition, out)
	}
	if !strings.Contains(out, text) {
		t.Errorf("run --exit-on-halt does not say %q:\n%s", text, out)
	}
}

// arrives wants the waiting relay to become ready by itself and to deliver.
func arrives(t *testing.T, h *rig.House, k *kafkaserver.Server, r *rig.Relay) {
	t.Helper()
	r.WaitReady(recoversWithin)
	l := newLedger(h)
	l.write(t, "a", "b", "a")
	l.judge(t, k.ConsumeN(t, 3, soon, h.Topic), 0)
	stopsClean(t, r)
}

func slots(t *testing.T, h *rig.House) string {
	t.Helper()
	return queryText(t, h, `select count(*)::text from pg_replication_slots`)
}
