package cases

// C26 (f): a publication that is missing, however often the relay is started,
// leaves no slots behind; and there is a way back.

import "testing"

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
