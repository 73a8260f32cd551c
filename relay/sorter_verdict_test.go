package relay

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/event"
)

func TestAClockThatCannotBeReadIsSaidAndTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var said []string
		say := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, what)
		}
		d := newDatabase()
		o := ordering()
		o.StallAfter = 20 * time.Second
		g := sortFrom(o, Observer{
			ClockUnread: func(string, error) { say("unread") },
			ClockRead:   func(string) { say("read") },
			Stalled:     func(string, time.Duration) { say("stalled") },
			Resumed:     func(string) { say("resumed") },
		}, event.ByStamp, &sink{}, d)
		want := func(words ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(said, words) {
				t.Fatalf("said %q, want %q", said, words)
			}
		}
		d.commit("a@0")
		sleep(1000)
		if f := g.OrderFigures().Sources[0]; !f.Read || f.Lag < 100*time.Millisecond || f.Lag > 500*time.Millisecond {
			t.Errorf("the watermark of an idle source: %+v", f)
		}
		d.set(func() { d.down = true })
		d.commit("a@1000")
		sleep(4000) // a short trouble is not worth a word
		want()
		if f := g.OrderFigures().Sources[0]; f.Items != 1 || f.Age < 3900*time.Millisecond || f.Age > 4100*time.Millisecond {
			t.Errorf("one event waits: %+v", f)
		}
		sleep(4000)
		want("unread")
		d.set(func() { d.down = false })
		sleep(1000)
		want("unread", "read")
		d.set(func() { d.down = true })
		sleep(30_000)
		want("unread", "read", "unread", "stalled")
		if f := g.OrderFigures().Sources[0]; f.Stalls != 1 || !f.Stalled || f.Attached {
			t.Errorf("a stalled source: %+v", f)
		}
		d.set(func() { d.down = false })
		sleep(1000)
		want("unread", "read", "unread", "stalled", "read", "resumed")
		g.end(t, d)
	})
}
