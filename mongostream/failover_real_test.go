package mongostream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// Elections by order, a primary that is killed and one that hangs, under a writer that
// repeats what it got no answer to: each acknowledged document comes, in the order of its
// commits, and once for each time that it was committed.
func TestElectionsAndAKilledPrimaryLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Nodes: 3})
	h := newHouse(t, server)
	h.insert(0)
	h.begin()
	w := h.open()

	stop, acknowledged := make(chan struct{}), make(chan []string)
	var written atomic.Int64
	go func() {
		var acks []string
		defer func() { acknowledged <- acks }()
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			_, err := h.outbox.InsertOne(ctx, row(n))
			cancel()
			if err == nil {
				acks = append(acks, fmt.Sprint(n))
				written.Add(1)
			}
		}
	}()
	more := func(n int64) {
		from := written.Load()
		h.until("the writer goes on", func() bool { return written.Load() >= from+n })
	}

	done := make(chan []seen)
	go func() {
		var got []seen
		defer func() { done <- got }()
		for {
			some, err := w.batch()
			if err != nil {
				return
			}
			for _, e := range some {
				got = append(got, e)
				if e.id == "last" {
					return
				}
			}
			w.Confirm(w.pos)
		}
	}()

	more(50)
	server.StepDown(t)
	more(50)
	killed := server.Primary(t)
	server.Kill(t, killed)
	more(50)
	server.StartAgain(t, killed)
	server.StepDown(t)
	more(50)
	close(stop)
	acks := <-acknowledged
	last := row(0)
	last[0].Value = "last"
	if _, err := h.outbox.InsertOne(ctx(t), last); err != nil {
		t.Fatal(err)
	}
	got := <-done
	seenIDs := map[string]int{}
	for i, e := range got {
		seenIDs[e.id]++
		if i > 0 && e.commit.Compare(got[i-1].commit) <= 0 {
			t.Errorf("event %s at %s comes after %s at %s", e.id, e.commit, got[i-1].id, got[i-1].commit)
		}
	}
	for _, id := range append(acks, "last") {
		if seenIDs[id] != 1 {
			t.Errorf("document %s came %d times", id, seenIDs[id])
		}
	}
	t.Logf("%d acknowledged, %d events, %d reconnects", len(acks), len(got), len(w.errs))
}

func TestAStandaloneServerIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Standalone: true})
	h := newHouse(t, server)
	var e *event.Error
	if _, err := Begin(ctx(t), h.client, h.opt); !errors.As(err, &e) || e.Anchor != AnchorStandalone || e.Fault != event.FaultPrecondition {
		t.Fatal(err)
	}
	w := h.open(func(o *Options) { o.Bookkeeping = NoBookkeeping; o.HaltOnPrecondition = true })
	if _, err := w.failure(); !errors.As(err, &e) || e.Anchor != AnchorStandalone {
		t.Fatal(err)
	}
}

func TestARightThatIsMissingIsNamedAndItsGrantIsNoticed(t *testing.T) {
	t.Parallel()
	server := mongoserver.Start(t, mongoserver.Options{Auth: true})
	h := newHouse(t, server)
	books := mongoserver.Privilege{Database: h.opt.Database, Collection: h.opt.SourcesCollection(), Actions: []string{"find", "insert", "update"}}
	reads := mongoserver.Privilege{Database: h.opt.Database, Collection: h.opt.Collection, Actions: []string{"find", "changeStream"}}
	server.AddRole(t, "relay", books)
	server.AddUser(t, "relay", "secret", mongoserver.Role{Name: "relay", Database: "admin"})
	h.begin()
	h.insert(1)
	h.opt.URL = server.URLAs("relay", "secret")
	strict := h.open(func(o *Options) { o.HaltOnPrecondition = true })
	var e *event.Error
	if _, err := strict.failure(); !errors.As(err, &e) || e.Anchor != AnchorRights || e.Fault != event.FaultPrecondition {
		t.Fatal(err)
	}
	strict.close()
	w := h.open()
	w.eventually("it halts", func() bool { return w.state() == event.StateHalted })
	server.SetRole(t, "relay", books, reads)
	if got := ids(w.events(1)); !slices.Equal(got, []string{"1"}) {
		t.Fatal(got)
	}
	server.SetRole(t, "relay", books)
	w.eventually("it notices that the right is gone", func() bool { return w.state() == event.StateHalted })
}
