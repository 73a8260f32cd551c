package mongostream

import (
	"context"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestAServersReportIsCompleteAndLessSoWithFewerRights(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Auth: true})
	h := newHouse(t, server)
	h.insert(1)
	position := h.begin().ClusterTime
	var m Monitor
	r, err := m.Report(ctx(t), h.client, position, position)
	if err != nil {
		t.Fatal(err)
	}
	if r.StreamLag > 5*time.Second || r.StreamLag < 0 || r.MajorityLag != 0 || r.OplogWindow < 0 || r.Headroom < 0 || r.Headroom > r.OplogWindow+time.Second || r.Member == "" || r.Majority.Compare(h.begin().Position()) <= 0 {
		t.Errorf("%+v", r)
	}
	if d := r.ClockOffset; d < -time.Second || d > time.Second {
		t.Errorf("the clock of this machine is %v off itself", d)
	}
	for role, window := range map[string]bool{"": false, "clusterMonitor": true} {
		user := "relay" + role
		server.AddRole(t, user, mongoserver.Privilege{Database: h.opt.Database, Actions: []string{"find", "changeStream"}})
		roles := []mongoserver.Role{{Name: user, Database: "admin"}}
		if role != "" {
			roles = append(roles, mongoserver.Role{Name: role, Database: "admin"})
		}
		server.AddUser(t, user, secret, roles...)
		o := h.opt
		o.URL = server.URLAs(user, secret)
		client, err := Connect(ctx(t), o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Report(ctx(t), client, position, position)
		if err != nil || (r.OplogWindow != event.Unmeasured) != window || (r.Headroom != event.Unmeasured) != window || r.StreamLag < 0 {
			t.Errorf("with role %q: %v %+v", role, err, r)
		}
		_ = client.Disconnect(context.Background())
	}
}

func TestAPositionThatTheOplogLeavesBehindIsSeenComing(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{OplogMB: 10})
	h := newHouse(t, server)
	h.insert(1)
	position := h.begin().ClusterTime
	server.OutrunOplog(t)
	var m Monitor
	r, err := m.Report(ctx(t), h.client, position, position)
	if err != nil {
		t.Fatal(err)
	}
	if r.Headroom != 0 {
		t.Errorf("the position is lost, and has a headroom of %v", r.Headroom)
	}
	if _, err := Apply(ctx(t), h.client, h.opt); err != nil {
		t.Fatal(err)
	}
	if f := finding(t, Check(ctx(t), h.opt), "position"); f.Err == nil || f.Err.Anchor != AnchorPositionLost || f.Err.Fault != event.FaultGap {
		t.Errorf("%+v", f)
	}
}

// Primary, secondary, arbiter: with the secondary away writes of w: 1 go on, and nothing comes out.
func TestAMajorityThatFallsBehindIsMeasured(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Nodes: 3, Arbiter: true})
	h := newHouse(t, server)
	h.insert(1)
	primary := server.Primary(t)
	server.Pause(t, 1-primary)
	defer server.Continue(t, 1-primary)
	weak := h.client.Database(h.opt.Database).Collection("other", options.Collection().SetWriteConcern(writeconcern.W1()))
	var m Monitor
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for ctx := ctx(t); ; {
		if _, err := weak.InsertOne(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
		r, err := m.Report(ctx, h.client, bson.Timestamp{}, bson.Timestamp{})
		if err != nil {
			t.Fatal(err)
		}
		if r.MajorityLag >= 2*time.Second {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%+v", r)
		case <-tick.C:
		}
	}
}
