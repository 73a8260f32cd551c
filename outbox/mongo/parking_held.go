package mongo

import (
	"cmp"
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/outbox"
)

// entryFields say what holds a key. They are all in the index that init makes, so that no event is read.
var entryFields = bson.D{is("key", 1), is("state", 1), is("whole", 1), is("relation", 1), is("row", 1)}

// rowsAtOnce bounds how many rows are asked for by their ids in one command.
const rowsAtOnce = 10_000

// Held lists the held keys. First it brings entries in line with their rows, which
// others may have changed:
//
//	row published or gone          the entry goes
//	row pending or processing      parked becomes retrying: somebody requeued it
//	row failed                     retrying becomes parked: it failed again
func (k *Parking) Held(ctx context.Context) (held []outbox.HeldKey, err error) {
	t, err := k.table(ctx)
	if err != nil {
		return nil, err
	}
	err = k.transact(ctx, "reading the held keys of source "+k.db.o.Source, func(ctx context.Context, at place) error {
		entries, err := find[parkedDocument](ctx, at.parked, k.ours(), options.Find().SetProjection(entryFields))
		if err != nil {
			return err
		}
		slices.SortFunc(entries, func(a, b parkedDocument) int { return cmp.Compare(a.ID, b.ID) })
		if entries, err = k.align(ctx, at, t, entries); err != nil {
			return err
		}
		held = heldKeys(entries)
		return nil
	})
	return held, err
}

// heldKeys sums entries up, in the order of the first of each key.
func heldKeys(entries []parkedDocument) (held []outbox.HeldKey) {
	places := map[string]int{}
	for i := range entries {
		e := &entries[i]
		if e.Key == "" {
			continue
		}
		n, known := places[e.Key]
		if !known {
			n = len(held)
			places[e.Key], held = n, append(held, outbox.HeldKey{Key: outbox.FromPlainText(e.Key), Behind: true})
		}
		h := &held[n]
		h.Parked = h.Parked || e.State == outbox.StateParked
		h.Behind = h.Behind && e.State == outbox.StateBehind
		if e.State == outbox.StateRetrying && !e.Whole {
			h.Heads = append(h.Heads, e.Row)
		}
	}
	return held
}

// rowState is what a row says of its event; "" where there is none.
type rowState struct{ status, why string }

// align brings entries in line with their rows and answers those that are left.
func (k *Parking) align(ctx context.Context, at place, t *Table, entries []parkedDocument) ([]parkedDocument, error) {
	var named []string
	names := func(e *parkedDocument) bool { return t.fails() && !e.Whole && k.isRow(e.Relation, e.Row) }
	for i := range entries {
		if names(&entries[i]) {
			named = append(named, entries[i].Row)
		}
	}
	states, err := t.states(ctx, at, named)
	if err != nil || len(named) == 0 {
		return entries, err
	}
	var gone, requeued []int64
	left := entries[:0]
	for _, e := range entries {
		if names(&e) {
			row := states[e.Row]
			switch {
			case row.status == "" || row.status == published:
				gone = append(gone, e.ID)
				continue
			case e.State == outbox.StateParked && (row.status == pending || row.status == processing):
				requeued = append(requeued, e.ID)
				e.State = outbox.StateRetrying
			case e.State == outbox.StateRetrying && row.status == failed:
				e.State = outbox.StateParked
				change := bson.D{is("state", e.State)}
				if row.why != "" {
					change = append(change, is("error", outbox.Printable(row.why)))
				}
				if _, err := at.parked.UpdateOne(ctx, bson.D{is(fieldID, e.ID)}, bson.D{is("$set", change)}); err != nil {
					return nil, err
				}
			}
		}
		left = append(left, e)
	}
	if len(gone) > 0 {
		if _, err := at.parked.DeleteMany(ctx, k.those(gone)); err != nil {
			return nil, err
		}
	}
	if len(requeued) > 0 {
		if _, err := at.parked.UpdateMany(ctx, k.those(requeued), bson.D{is("$set", bson.D{is("state", outbox.StateRetrying)})}); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// states reads the rows of these ids.
func (t *Table) states(ctx context.Context, at place, rows []string) (map[string]rowState, error) {
	states := make(map[string]rowState, len(rows))
	fields := options.Find().SetProjection(bson.D{is(t.statusField(), 1), is(fieldLastError, 1)}).SetHint(byID)
	for part := range slices.Chunk(rows, rowsAtOnce) {
		cursor, err := at.rows.Find(ctx, bson.D{in(fieldID, idValues(part))}, fields)
		if err != nil {
			return nil, err
		}
		if err = each(ctx, cursor, func(doc bson.Raw) error {
			id, err := idText(doc)
			state, _ := doc.Lookup(t.statusField()).StringValueOK()
			why, _ := doc.Lookup(fieldLastError).StringValueOK()
			states[id] = rowState{state, why}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// wholeBytes bounds how much of the events that may go is brought at a time.
const wholeBytes = 32 << 20

// Whole gives the events that are kept whole and may go. One that was left behind
// waits until nothing of its key is parked, and no row of it is still to go before.
func (k *Parking) Whole(ctx context.Context, limit int) (list []outbox.Parked, err error) {
	err = k.transact(ctx, "reading the parked events that may go", func(ctx context.Context, at place) error {
		waits, err := k.waits(ctx, at)
		if err != nil {
			return err
		}
		behind := bson.D{is("state", outbox.StateBehind)}
		if len(waits) > 0 {
			behind = append(behind, is("key", op("$nin", waits)))
		}
		if list, err = k.readWhole(ctx, at, limit, bson.A{bson.D{is("state", outbox.StateRetrying)}, behind}); err != nil || at.atomic {
			return err
		}
		// Whoever was left behind meanwhile waits for somebody who was parked before.
		waits, err = k.waits(ctx, at)
		list = slices.DeleteFunc(list, func(p outbox.Parked) bool {
			return p.State == outbox.StateBehind && p.Key != "" && slices.Contains(waits, outbox.PlainText(p.Key))
		})
		return err
	})
	return list, err
}

// waits are the keys, as they are written, that something parked holds, or a row that is to go first.
func (k *Parking) waits(ctx context.Context, at place) ([]string, error) {
	holding, err := find[parkedDocument](ctx, at.parked, k.ours(is("key", op("$ne", "")), is("$or", bson.A{
		bson.D{is("state", outbox.StateParked)},
		bson.D{is("state", outbox.StateRetrying), is("whole", false)},
	})), options.Find().SetProjection(bson.D{is("key", 1)}))
	keys := make([]string, len(holding))
	for i := range holding {
		keys[i] = holding[i].Key
	}
	slices.Sort(keys)
	return slices.Compact(keys), err
}

func (k *Parking) readWhole(ctx context.Context, at place, limit int, any bson.A) (list []outbox.Parked, err error) {
	found, err := at.parked.Find(ctx, k.ours(is("whole", true), is("$or", any)),
		options.Find().SetSort(bson.D{is("commit", 1), is("ordinal", 1), is(fieldID, 1)}).SetLimit(int64(limit)).SetBatchSize(16).SetAllowDiskUse(true))
	if err != nil {
		return nil, err
	}
	defer found.Close(context.WithoutCancel(ctx))
	for bytes := 0; bytes < wholeBytes && found.Next(ctx); {
		var doc parkedDocument
		if err := found.Decode(&doc); err != nil {
			return nil, err
		}
		p, err := k.parked(&doc)
		if err != nil {
			return nil, err
		}
		list, bytes = append(list, p), bytes+len(found.Current)
	}
	return list, found.Err()
}

// Kept lists the events that the stream brought and that are kept whole.
func (k *Parking) Kept(ctx context.Context) ([]outbox.Parked, error) {
	return k.entries(ctx, "reading what is kept whole", k.ours(is("whole", true), is("commit", op("$ne", ""))), options.Find().SetProjection(withoutEvent))
}

// Done forgets entries: their events are published.
func (k *Parking) Done(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return k.transact(ctx, "forgetting parked events that were published", func(ctx context.Context, at place) error {
		_, err := at.parked.DeleteMany(ctx, k.those(ids))
		return err
	})
}

func (k *Parking) those(ids []int64) bson.D {
	return k.ours(is(fieldID, bson.D{is("$in", ids)}))
}
