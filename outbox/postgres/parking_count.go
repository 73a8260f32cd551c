package postgres

import (
	"context"

	"github.com/walrelay/walrelay/outbox"
)

// Counts counts the source's entries by state, by the index on owner and key.
func (k *Parking) Counts(ctx context.Context) (map[outbox.ParkState]int64, error) {
	counts := map[outbox.ParkState]int64{}
	err := k.db.transact(ctx, "counting parked events", statement{
		sql:  `SELECT e.state, pg_catalog.count(*) FROM ` + k.table + ` e WHERE e.owner = $1::pg_catalog.text GROUP BY 1`,
		args: [][]byte{text(k.db.o.Owner)},
		row: func(v [][]byte) error {
			var n int64
			if err := into(&n)(v[1:]); err != nil {
				return err
			}
			counts[outbox.ParkState(v[0])] = n
			return nil
		},
	})
	return counts, err
}
