package mongostream

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// die ends a stream as a killed process would: nothing is stored, nothing is let go.
func (w *watched) die() {
	w.t.Helper()
	w.cancel(errors.New("killed"))
	w.close()
}

func TestAStandbyTakesOverWhenTheReaderLeavesAndWhenItDies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	first := h.openKept()
	h.insert(1)
	first.events(1)
	first.Confirm(first.pos)

	second := h.openKept()
	second.eventually("it stands by", func() bool { return second.state() == event.StateStandby })
	if _, active, err := Assess(ctx(t), h.client, h.opt); err != nil || !active {
		t.Fatalf("active %v, %v", active, err)
	}
	first.close()
	h.insert(2)
	began := time.Now()
	if got := ids(second.events(1)); got[0] != "2" {
		t.Fatal(got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took over after %v from one that left", took)
	}
	second.Confirm(second.pos)
	h.until("the position is stored", func() bool { return h.record().Data == second.pos.Token })

	third := h.open()
	third.eventually("it stands by", func() bool { return third.state() == event.StateStandby })
	second.die()
	began = time.Now()
	h.insert(3)
	if got := ids(third.events(1)); got[0] != "3" {
		t.Fatal(got)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took over after %v from one that died", took)
	}
	if r := h.record(); r.Epoch < 4 {
		t.Errorf("the epoch is %d after three readers", r.Epoch)
	}
}

func TestAZombieStopsAndNeverMovesThePosition(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	zombie := h.openKept(func(o *Options) { o.CheckpointEvery = time.Hour; o.LeaseTTL = time.Hour })
	h.insert(1, 2)
	zombie.events(2)
	// The lease runs out unnoticed, as it does for a process that was frozen.
	if _, err := h.opt.update(ctx(t), h.client, nil, bson.D{{Key: "lease_until", Value: time.Unix(1, 0)}}, false); err != nil {
		t.Fatal(err)
	}
	next := h.open()
	next.events(2)
	before := h.record()

	zombie.Confirm(zombie.pos)
	zombie.Nudge()
	_, err := zombie.failure()
	if event.ClassOf(err) != event.Retry || !errors.Is(err, errRestart) {
		t.Fatal(err)
	}
	zombie.close()
	after := h.record()
	if after.Data != before.Data || after.Holder != before.Holder || after.Epoch != before.Epoch {
		t.Fatalf("the zombie made %+v of %+v", after, before)
	}
	// One that is late beyond all bounds hits nothing either.
	late := lease{holder: zombie.holder, epoch: before.Epoch - 1}
	if ours, err := h.opt.save(ctx(t), h.client, late, placeOf(tokenOf(zombie.pos.Token)), nil); err != nil || ours {
		t.Fatalf("ours %v, %v", ours, err)
	}
}

// A majority is missing for longer than the lease: the reader stops by its own clock,
// and goes on where it was once the lease is renewed, for nobody else had it.
func TestAReaderWithoutAMajorityStopsAndGoesOnWithoutRepeating(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Nodes: 3})
	h := newHouse(t, server)
	h.begin()
	w := h.open()
	h.insert(1)
	w.events(1)
	var others []int
	for i, primary := 0, server.Primary(t); i < server.Nodes(); i++ {
		if i != primary {
			others = append(others, i)
		}
	}
	server.Pause(t, others...)
	w.eventually("it stops", func() bool { return w.state() == event.StateDisconnected })
	if w.reigns() {
		t.Error("it still thinks the source its own")
	}
	server.Continue(t, others...)
	h.insert(2)
	if got := ids(w.events(1)); got[0] != "2" {
		t.Fatal(got)
	}
}

func TestAnOperatorMovesThePositionOnlyWhileNobodyReads(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	h.insert(1, 2, 3)
	w := h.openKept()
	got := w.events(3)
	_, err := SetPosition(ctx(t), h.client, h.opt, Target{Now: true})
	var e *event.Error
	if !errors.As(err, &e) || e.Fault != event.FaultPrecondition {
		t.Fatalf("set while somebody reads: %v", err)
	}
	w.Confirm(w.pos)
	w.close()
	for i, c := range []struct {
		name string
		to   Target
		want []string
		from int // the first of what earlier cases inserted
	}{
		{"token", Target{Token: got[0].commit.Token}, []string{"2", "3"}, 0},
		{"time", Target{Time: tokenTime(got[1].commit.Token)}, []string{"2", "3"}, 0},
		{"time past the second", Target{Time: after(tokenTime(got[1].commit.Token))}, []string{"3"}, 0},
		{"now", Target{Now: true}, nil, 3},
	} {
		before := h.record()
		r, err := SetPosition(ctx(t), h.client, h.opt, c.to)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if r.Epoch <= before.Epoch || r.Phase != event.PhaseStreaming {
			t.Errorf("%s: %+v", c.name, r)
		}
		h.insert(100 + i)
		want := append(c.want, numbers(100+c.from, 100+i)...)
		w := h.openKept()
		if seen := ids(w.events(len(want))); !slices.Equal(seen, want) {
			t.Errorf("%s: read %v, want %v", c.name, seen, want)
		}
		w.close()
	}
	if _, err := SetPosition(ctx(t), h.client, h.opt, Target{Token: "no token"}); err == nil {
		t.Error("nonsense was taken")
	}
	future := bson.Timestamp{T: uint32(time.Now().Unix()) + 3600}
	if _, err := SetPosition(ctx(t), h.client, h.opt, Target{Time: future}); !errors.As(err, &e) || e.Anchor != AnchorWentBack {
		t.Errorf("the future was taken: %v", err)
	}
	if _, err := SetPosition(ctx(t), h.client, h.opt, Target{}); err == nil {
		t.Error("nothing was taken")
	}
}

func TestEarlierPositionsAreKeptAMinuteApart(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	first := h.begin()
	mine := lease{holder: "me"}
	r, got, err := h.opt.acquire(ctx(t), h.client, mine)
	if err != nil || !got {
		t.Fatal(r, got, err)
	}
	mine.epoch = r.Epoch
	save := func(data string) *Record {
		if ours, err := h.opt.save(ctx(t), h.client, mine, placeOf(tokenOf(data)), nil); err != nil || !ours {
			t.Fatal(ours, err)
		}
		return h.record()
	}
	older := func() {
		_, err := h.opt.update(ctx(t), h.client, nil, bson.D{{Key: "earlier", Value: bson.D{{Key: "$map", Value: bson.D{
			{Key: "input", Value: "$earlier"}, {Key: "in", Value: bson.D{{Key: "$mergeObjects", Value: bson.A{"$$this", bson.D{{Key: "saved_at", Value: time.Unix(1, 0)}}}}}},
		}}}}}, false)
		if err != nil {
			t.Fatal(err)
		}
	}
	r = save("82FF01")
	if len(r.Earlier) != 1 || r.Earlier[0].Data != first.Data {
		t.Fatalf("kept %+v", r.Earlier)
	}
	if r = save("82FF02"); len(r.Earlier) != 1 {
		t.Fatalf("kept %+v so soon", r.Earlier)
	}
	for _, data := range []string{"82FF03", "82FF04", "82FF05"} {
		older()
		r = save(data)
	}
	if len(r.Earlier) != 3 || r.Earlier[0].Data != "82FF04" || r.Earlier[2].Data != "82FF02" || r.Data != "82FF05" {
		t.Fatalf("kept %+v", r.Earlier)
	}
}

func TestPollingIsRememberedUntilTheStreamIsFollowed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	if err := MarkPolled(ctx(t), h.client, h.opt); err != nil {
		t.Fatal(err)
	}
	h.begin()
	if err := MarkPolled(ctx(t), h.client, h.opt); err != nil {
		t.Fatal(err)
	}
	if r, active, err := Assess(ctx(t), h.client, h.opt); err != nil || active || r.Phase != event.PhasePolled {
		t.Fatalf("%+v %v %v", r, active, err)
	}
	w := h.open()
	w.eventually("it streams", func() bool { return w.state() == event.StateStreaming })
	if r := h.record(); r.Phase != event.PhaseStreaming {
		t.Errorf("the phase is %s", r.Phase)
	}
}
