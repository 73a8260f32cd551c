package outbox_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

// A row fails while the database is asked what holds keys.
func TestALookNeverForgetsWhatFailedMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, b := outboxfake.NewDB(), newBroker()
		b.missing["late"] = true
		db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
		var looks atomic.Int64
		p := start(t, db, b, setup{
			name: "one", opt: outbox.Options{BackoffMin: 20 * time.Second}, delay: func() time.Duration { return 5500 * time.Millisecond },
			slow: func(op string) {
				if op == "unfinished" && looks.Add(1) == 2 {
					time.Sleep(time.Second)
				}
			},
		})
		time.Sleep(7 * time.Second)
		if looks.Load() < 2 || db.Row("k1").Attempts != 1 {
			t.Fatalf("%d looks, the row is %+v", looks.Load(), db.Row("k1"))
		}
		b.change(func(b *broker) { delete(b.missing, "late") })
		insert(db, "k", 1)
		until(t, 2*time.Minute, "drained", drained(db))
		equal(t, b.ids("k"), []string{"k1", "r000002"})
		p.stop(t)
	})
}

func TestADeletedRowFreesItsKey(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]outbox.Traits{"row": outboxfake.ForzeRow, "basic": outboxfake.Basic} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, b, gate := outboxfake.NewDB(), newBroker(), outbox.NewGate()
				b.missing["late"] = true
				db.Insert(outboxfake.Row{ID: "k1", Key: "k", Route: "late"})
				db.Insert(outboxfake.Row{ID: "k2", Key: "k"})
				p := start(t, db, b, setup{name: "one", kind: kind, gate: gate})
				until(t, time.Minute, "held", func() bool { return gate.Len() == 1 })
				until(t, time.Minute, "it waits", func() bool {
					if r := db.Row("k1"); r.Status == outboxfake.Pending && p.n.claims.Load() > 3 {
						db.Delete("k1")
						return true
					}
					return false
				})
				until(t, time.Minute, "the next one", func() bool { return len(b.ids("k")) == 1 })
				until(t, time.Minute, "the key is free", func() bool { return gate.Len() == 0 })
				p.stop(t)
			})
		})
	}
}
