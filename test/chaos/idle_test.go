package chaos

import (
	"errors"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

// One gigabyte is written to another table, and as much to another database of
// the same server, while the outbox is silent.
func TestIdleOutboxHoldsNoLogOfOthersBack(t *testing.T) {
	t.Parallel()
	pg := pgserver.Start(t, pgserver.Options{Version: pgserver.V18})
	k := kafkaserver.Shared(t)
	h := rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 1, nil))
	h.Init(t)
	h.Insert(t, "orders", "a")
	r := h.Start(t)
	k.ConsumeN(t, 1, 30*time.Second, h.Topic)
	elsewhere := pg.NewDatabase(t)
	for _, db := range []string{h.Database, elsewhere} {
		const chunk = 128 << 20
		pg.ExecIn(t, db, `create table bulk (x text)`)
		pg.ExecIn(t, db, `alter table bulk alter column x set storage external`)
		for range (1 << 30) / chunk {
			// Random enough that the log is as large as the data.
			pg.ExecIn(t, db, `insert into bulk select repeat(md5(g::text || random()::text), 4096) from generate_series(1, 1024) g`)
			pg.ExecIn(t, db, `truncate bulk`)
		}
		var retained int64
		rig.Eventually(t, "less than 64 MB of retained log", 30*time.Second, func() error {
			if retained = h.ReadSlot(t).Retained; retained >= 64<<20 {
				return errors.New("still more")
			}
			return nil
		})
		t.Logf("1 GB of foreign log later %d KiB are retained", retained>>10)
	}
	if got := k.Consume(t, h.Topic); len(got) != 1 {
		t.Errorf("%d records in Kafka, want the one event", len(got))
	}
	if code, _ := r.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
