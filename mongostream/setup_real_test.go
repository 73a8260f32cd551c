package mongostream

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// claiming makes the house one whose documents are marked and claimed.
func claiming(h *house) *house {
	h.opt.WriteBack, h.opt.Retains, h.opt.OnGap = MarkRows, true, GapCatchUp
	return h
}

func TestInitMakesAllThatIsMissingAndASecondTimeNothing(t *testing.T) {
	t.Parallel()
	h := claiming(newHouse(t, mongoserver.Shared(t)))
	steps, err := Apply(ctx(t), h.client, h.opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.Done() {
			t.Errorf("%s was there in an empty database", s.What)
		}
	}
	if last := steps[len(steps)-1]; last.What != "position of orders" {
		t.Errorf("the last step is %q", last.What)
	}
	if r := h.record(); r == nil || r.Phase != event.PhaseCreated {
		t.Errorf("record %+v", r)
	}
	before := h.record()
	if steps, err = Apply(ctx(t), h.client, h.opt); err != nil || !steps.Done() {
		t.Errorf("%v, steps %+v", err, steps)
	}
	if now := h.record(); now.Data != before.Data || now.Epoch != before.Epoch {
		t.Errorf("the position was moved from %s to %s", before.Data, now.Data)
	}
	for _, f := range Check(ctx(t), h.opt) {
		if f.Err != nil {
			t.Errorf("%s: %s", f.Setting, f.Is)
		}
		if f.Warning && f.Setting != "rights" { // the shared server asks nobody to log in
			t.Errorf("%s: %s (%s)", f.Setting, f.Is, f.Remedy)
		}
	}
}

func TestInitLeavesWhatAnApplicationHasMade(t *testing.T) {
	t.Parallel()
	h := claiming(newHouse(t, mongoserver.Shared(t)))
	made := func(keys bson.D, o *options.IndexOptionsBuilder) {
		if _, err := h.outbox.Indexes().CreateOne(ctx(t), mongo.IndexModel{Keys: keys, Options: o}); err != nil {
			t.Fatal(err)
		}
	}
	made(bson.D{{Key: "outbox_route", Value: 1}, {Key: "event_id", Value: 1.0}}, options.Index().SetUnique(true).SetName("theirs"))
	made(bson.D{{Key: "outbox_route", Value: 1}, {Key: "status", Value: 1}, {Key: "available_at", Value: 1}, {Key: "created_at", Value: 1}, {Key: "more", Value: 1}}, options.Index().SetName("longer"))
	if _, err := h.outbox.InsertOne(ctx(t), bson.D{{Key: "outbox_route", Value: "a"}, {Key: "event_id", Value: "1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(ctx(t), h.client, h.opt); err != nil {
		t.Fatal(err)
	}
	there, err := readIndexes(ctx(t), h.outbox.Database(), h.opt.Collection)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range there {
		names = append(names, x.Name)
	}
	for _, name := range []string{"outbox_route_1_event_id_1", "outbox_route_1_status_1_available_at_1_created_at_1"} {
		if slices.Contains(names, name) {
			t.Errorf("%s was made although an index of theirs serves: %v", name, names)
		}
	}
	for _, name := range []string{"walrelay_pending", "walrelay_processing", "walrelay_failed", "walrelay_published", "outbox_route_1_status_1_available_at_1_hlc_1_created_at_1_id_1", "claim_token_1"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing: %v", name, names)
		}
	}
}

func TestAnIndexThatCannotBeMadeIsAPreconditionThatSaysWhy(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	for range 2 {
		if _, err := h.outbox.InsertOne(ctx(t), bson.D{{Key: "outbox_route", Value: "a"}, {Key: "event_id", Value: secret}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Apply(ctx(t), h.client, h.opt)
	var e *event.Error
	if !as(err, &e) || e.Anchor != AnchorIndex || e.Fault != event.FaultPrecondition || !strings.Contains(e.What, "twice") || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
	h = newHouse(t, mongoserver.Shared(t))
	if _, err := h.outbox.Indexes().CreateOne(ctx(t), mongo.IndexModel{Keys: bson.D{{Key: "outbox_route", Value: 1}, {Key: "event_id", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err = Apply(ctx(t), h.client, h.opt); !as(err, &e) || e.Anchor != AnchorIndex || !strings.Contains(e.What, "other options") {
		t.Errorf("%v", err)
	}
}

func TestAViewIsNoOutbox(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	if err := h.outbox.Database().CreateView(ctx(t), "outbox", "other", bson.A{}); err != nil {
		t.Fatal(err)
	}
	_, err := Apply(ctx(t), h.client, h.opt)
	var e *event.Error
	if !as(err, &e) || e.Anchor != AnchorCollection {
		t.Errorf("%v", err)
	}
	if f := finding(t, Check(ctx(t), h.opt), "collection"); f.Err == nil || f.Err.Anchor != AnchorCollection {
		t.Errorf("%+v", f)
	}
}

// finding is the first whose setting begins so.
func finding(t *testing.T, findings []event.Finding, setting string) event.Finding {
	t.Helper()
	for _, f := range findings {
		if strings.HasPrefix(f.Setting, setting) {
			return f
		}
	}
	t.Fatalf("nothing is said about %q: %+v", setting, findings)
	return event.Finding{}
}

func TestThePrintedScriptNamesAllThatInitMakes(t *testing.T) {
	t.Parallel()
	h := claiming(newHouse(t, mongoserver.Shared(t)))
	var script bytes.Buffer
	if err := Print(&script, h.opt); err != nil {
		t.Fatal(err)
	}
	steps, err := Plan(ctx(t), h.client, h.opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		for _, command := range s.Commands {
			if !strings.HasPrefix(command, "//") && !strings.Contains(script.String(), command) {
				t.Errorf("not in the script: %s", command)
			}
		}
	}
	for _, needed := range []string{`actions: ["find", "changeStream", "update", "remove", "listIndexes"]`, `collection: "oplog.rs"`, "walrelay init"} {
		if !strings.Contains(script.String(), needed) {
			t.Errorf("not in the script: %s", needed)
		}
	}
	if strings.Contains(script.String(), h.opt.URL) {
		t.Error("the script holds the URL")
	}
	t.Log("\n" + script.String())
}
