package outbox_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/outboxfake"
)

func TestTheCaretakerDeletesInBatchesAndReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := outboxfake.NewDB()
		for range 25 {
			db.Insert(outboxfake.Row{Key: "k", Status: outboxfake.Published, PublishedAt: time.Now()})
		}
		insert(db, "k", 3)
		var pending, deleted, calls atomic.Int64
		c := outbox.NewCaretaker([]outbox.Table{&outboxfake.Table{DB: db, Kind: outboxfake.ForzeRow}},
			outbox.Options{KeepPublished: time.Hour, RetainBatch: 10}, outbox.CaretakerObserver{
				Figures: func(_ string, f outbox.Figures) { pending.Store(f.Pending) },
				Retained: func(_ string, r outbox.Retained) {
					calls.Add(1)
					deleted.Add(r.Rows)
				},
			})
		ctx, cancel := contextOf(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.Run(ctx)
		}()
		time.Sleep(59 * time.Minute)
		if deleted.Load() != 0 || pending.Load() != 3 {
			t.Fatalf("%d deleted before their time, %d pending", deleted.Load(), pending.Load())
		}
		time.Sleep(3 * time.Minute)
		if deleted.Load() != 25 || calls.Load() != 3 {
			t.Fatalf("%d rows deleted in %d batches of 10", deleted.Load(), calls.Load())
		}
		cancel()
		<-done
	})
}
