package mongostream

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// wantGap checks an error that stands for a lost position.
func wantGap(t *testing.T, err error, anchor event.Anchor, text string) {
	t.Helper()
	var e *event.Error
	if !errors.As(err, &e) || e.Class != event.Halt || e.Fault != event.FaultGap || e.Anchor != anchor || !strings.Contains(err.Error(), text) || e.Remedy == "" {
		t.Fatalf("the error is %v (%+v), want a gap of %s that says %q", err, e, anchor, text)
	}
}

// Most frequent report of all: a quiet collection in a busy cluster. Only a position that
// moves while nothing comes survives; here some 60 MB pass an oplog of 10.
func TestAnIdlePositionMovesWithForeignWrites(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{OplogMB: 10})
	h := newHouse(t, server)
	h.insert(0)
	begun := h.begin()
	w := h.openKept()
	server.OutrunOplog(t)
	end, err := End(ctx(t), h.client)
	if err != nil {
		t.Fatal(err)
	}
	w.Nudge()
	w.idle(end)
	w.Confirm(w.pos)
	w.close()
	if r := h.record(); r.Data <= begun.Data {
		t.Fatalf("the position stays at %s", r.Data)
	}
	h.insert(1)
	again := h.openKept()
	if got := ids(again.events(1)); got[0] != "1" {
		t.Fatal(got)
	}
	again.close() // without a confirmation

	// The same while nobody reads: the position is lost, it is said so, and nothing begins anew by itself.
	server.OutrunOplog(t)
	_, active, err := Assess(ctx(t), h.client, h.opt)
	wantGap(t, err, AnchorPositionLost, "no longer reaches back")
	if active {
		t.Error("somebody is said to read")
	}
	lost := h.open()
	_, err = lost.failure()
	wantGap(t, err, AnchorPositionLost, "no longer reaches back")
	lost.eventually("it halts", func() bool { return lost.state() == event.StateHalted })
	lost.close()

	before := h.record()
	_, err = SetPosition(ctx(t), h.client, h.opt, Target{Token: before.Data})
	wantGap(t, err, AnchorPositionLost, "no longer reaches back")
	if err := Replace(ctx(t), h.client, h.opt); err != nil {
		t.Fatal(err)
	}
	after := h.record()
	if after.Epoch <= before.Epoch || after.Data <= before.Data || after.Phase != event.PhaseCreated {
		t.Fatalf("begun anew as %+v after %+v", after, before)
	}
	h.insert(2)
	anew := h.open()
	if got := ids(anew.events(1)); got[0] != "2" {
		t.Fatal(got)
	}
}

func TestADroppedCollectionHaltsOrIsFollowedWithoutAGap(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.insert(0)
	h.begin()
	w := h.openKept()
	h.insert(1)
	if err := h.outbox.Drop(ctx(t)); err != nil {
		t.Fatal(err)
	}
	h.insert(2) // makes it anew, and before anybody has noticed
	got, err := w.failure()
	if !slices.Equal(ids(got), []string{"1"}) {
		t.Fatal(ids(got))
	}
	wantGap(t, err, AnchorDropped, "was dropped")
	// A relay that halted stays up to say why; what it has under way is stored, and its lease runs out.
	w.Confirm(w.pos)
	h.until("the position is stored", func() bool { return h.record().Data == w.pos.Token })
	h.until("the source is free", func() bool { r := h.record(); return !r.active() })
	w.close()

	still := h.open()
	if _, err = still.failure(); err == nil || !strings.Contains(err.Error(), "was dropped") {
		t.Fatalf("after a restart: %v", err)
	}
	still.close()

	follow := h.openKept(func(o *Options) { o.OnDrop = DropContinue })
	if got := ids(follow.events(1)); got[0] != "2" {
		t.Fatal(got)
	}
	if err := h.client.Database("admin").RunCommand(ctx(t), bson.D{
		{Key: "renameCollection", Value: h.opt.Namespace()}, {Key: "to", Value: h.opt.Database + ".old"},
	}).Err(); err != nil {
		t.Fatal(err)
	}
	end, err := End(ctx(t), h.client)
	if err != nil {
		t.Fatal(err)
	}
	follow.Nudge()
	follow.idle(end)
	h.insert(3)
	if got := ids(follow.events(1)); got[0] != "3" {
		t.Fatal(got)
	}
	follow.Confirm(follow.pos)
	follow.close()
	h.insert(4)
	again := h.open()
	if got := ids(again.events(1)); got[0] != "4" {
		t.Fatal(got)
	}
}

// The position is that of an event which the pipeline of today leaves out, as it would be
// after a change of it: its time is as good.
func TestATokenThatIsNotFoundIsReplacedByItsTimeExactly(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.insert(0)
	h.begin()
	cs, err := h.outbox.Watch(ctx(t), bson.A{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cs.Close(ctx(t)) }()
	h.insert(1)
	if _, err := h.outbox.UpdateOne(ctx(t), bson.D{{Key: "event_id", Value: "1"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	h.insert(2)
	for range 2 {
		if !cs.Next(ctx(t)) {
			t.Fatal(cs.Err())
		}
	}
	update := cs.Current.Lookup("_id").Document()
	if err := h.opt.replace(ctx(t), h.client, placeOf(slices.Clone(update)), event.PhaseStreaming); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Assess(ctx(t), h.client, h.opt); err != nil {
		t.Errorf("assessed: %v", err)
	}
	w := h.open()
	if got := ids(w.events(1)); got[0] != "2" {
		t.Fatal(got)
	}

	// A changed pipeline is known by its hash, without an error first; the event of the token is not repeated.
	cur := tokenOf(w.pos.Token)
	w.close()
	if err := h.opt.replace(ctx(t), h.client, placeOf(cur), event.PhaseStreaming); err != nil {
		t.Fatal(err)
	}
	if _, err := h.opt.update(ctx(t), h.client, nil, bson.D{{Key: "print", Value: "of another version"}}, false); err != nil {
		t.Fatal(err)
	}
	h.insert(3)
	again := h.open()
	if got := ids(again.events(1)); got[0] != "3" {
		t.Fatal(got)
	}
	again.eventually("the repeated event is counted", func() bool { return again.ignored["repeated"] == 1 })
}

func TestAPositionOfAnotherPlaceIsAGap(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	for _, c := range []struct {
		name   string
		set    bson.D
		anchor event.Anchor
		says   string
	}{
		{"another set", bson.D{{Key: "replica_set", Value: "rs9"}}, AnchorOtherCluster, "rs9"},
		{"another collection", bson.D{{Key: "collection", Value: "invoices"}}, AnchorPositionLost, "invoices"},
		{"the future", bson.D{{Key: "cluster_time", Value: bson.Timestamp{T: uint32(time.Now().Unix()) + 3600}}}, AnchorWentBack, "past the last write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := *h
			h.t = t
			h.opt.Marker = c.name
			h.begin()
			if _, err := h.opt.update(ctx(t), h.client, nil, c.set, false); err != nil {
				t.Fatal(err)
			}
			_, _, err := Assess(ctx(t), h.client, h.opt)
			wantGap(t, err, c.anchor, c.says)
			w := h.open()
			_, err = w.failure()
			wantGap(t, err, c.anchor, c.says)
		})
	}
}

// A token of the end of the log says nothing of the collection, and every server takes it.
func TestEventsOfAnotherServersCollectionAreNotPublished(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	if _, err := h.opt.update(ctx(t), h.client, nil, bson.D{{Key: "collection_uuid", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}, false); err != nil {
		t.Fatal(err)
	}
	h.insert(1)
	w := h.open()
	got, err := w.failure()
	wantGap(t, err, AnchorOtherCluster, "identity")
	if len(got) != 0 {
		t.Errorf("published %v", ids(got))
	}
}

func TestWithoutARecordTheStreamSaysWhatIsMissingAndBeginsOnceItIsThere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	_, _, err := Assess(ctx(t), h.client, h.opt)
	var e *event.Error
	if !errors.As(err, &e) || e.Fault != event.FaultPrecondition || e.Anchor != AnchorNotInitialised {
		t.Fatal(err)
	}
	strict := h.open(func(o *Options) { o.HaltOnPrecondition = true })
	if _, err := strict.failure(); !errors.As(err, &e) || e.Anchor != AnchorNotInitialised {
		t.Fatal(err)
	}
	patient := h.open()
	patient.eventually("it halts", func() bool { return patient.state() == event.StateHalted })
	h.begin()
	h.insert(1)
	if got := ids(patient.events(1)); got[0] != "1" {
		t.Fatal(got)
	}
}
