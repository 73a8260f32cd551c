package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// Mark writes the outcome of events that the stream brought.
//
// The stream shows what the majority has. The first command here waits for the majority too, and a
// primary that the majority follows has all that the majority had before: a row that it does not find
// is gone, there is nothing that could become visible later.
func (t *Table) Mark(ctx context.Context, marks []outbox.Mark) (outbox.Marked, error) {
	var m outbox.Marked
	if len(marks) == 0 {
		return m, nil
	}
	if t.db.o.AfterPublish == Keep {
		m.Settled = len(marks)
		return m, nil
	}
	w := marking{t: t, of: map[string]int{}}
	for i := range marks {
		if _, twice := w.of[marks[i].ID]; twice {
			m.Settled++ // an id may come twice in one call
			continue
		}
		w.of[marks[i].ID] = i
		why := ""
		if t.l.states() && marks[i].Error != "" {
			why = outbox.Printable(marks[i].Error)
		}
		w.add(why, marks[i].ID)
	}
	err := t.with(ctx, "marking rows of", func(ctx context.Context, c *driver.Collection) error { return w.write(ctx, c, &m) })
	if err != nil {
		return outbox.Marked{}, err
	}
	return m, nil
}

// marking is one call of Mark.
type marking struct {
	t     *Table
	of    map[string]int // index of the mark of an id
	kinds []kind

	updated, deleted int // rows, so far
}

// kind is marks that one statement writes.
type kind struct {
	why string // empty: published
	ids []string
}

func (w *marking) add(why, id string) {
	for n := range w.kinds {
		if w.kinds[n].why == why {
			w.kinds[n].ids = append(w.kinds[n].ids, id)
			return
		}
	}
	w.kinds = append(w.kinds, kind{why, []string{id}})
}

func (w *marking) write(ctx context.Context, c *driver.Collection, m *outbox.Marked) error {
	n, err := w.writeIn(ctx, c, w.t.l.isPending())
	m.Pending = n
	if err != nil || n == len(w.of) {
		return err
	}
	if w.t.l.states() {
		if n, err = w.writeIn(ctx, c, bson.D{is(w.t.l.column(event.Status), processing)}); err != nil {
			return err
		}
		m.Foreign = n
		if m.Pending+m.Foreign == len(w.of) {
			return nil
		}
	}
	return w.explain(ctx, c, m)
}

// writeIn writes the marks to those rows that are in a state, and answers how many these were.
func (w *marking) writeIn(ctx context.Context, c *driver.Collection, state bson.D) (int, error) {
	models := make([]driver.WriteModel, len(w.kinds))
	for n, k := range w.kinds {
		filter := append(bson.D{in(fieldID, idValues(k.ids))}, state...)
		if k.why == "" && w.t.deletes() {
			models[n] = driver.NewDeleteManyModel().SetFilter(filter).SetHint(byID)
			continue
		}
		change := w.t.publishing()
		if k.why != "" {
			change = bson.D{is("$set", bson.D{is(w.t.l.column(event.Status), failed), is(fieldLastError, k.why)})}
		}
		models[n] = driver.NewUpdateManyModel().SetFilter(filter).SetUpdate(change).SetHint(byID)
	}
	r, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	if err != nil {
		return 0, err
	}
	w.updated += int(r.MatchedCount)
	w.deleted += int(r.DeletedCount)
	return int(r.MatchedCount + r.DeletedCount), nil
}

// explain looks at what became of the rows that no mark has hit: they are in a final state, or gone.
func (w *marking) explain(ctx context.Context, c *driver.Collection, m *outbox.Marked) error {
	ids := make([]string, 0, len(w.of))
	for id := range w.of {
		ids = append(ids, id)
	}
	there := 0
	cursor, err := c.Find(ctx, bson.D{in(fieldID, idValues(ids))},
		options.Find().SetHint(byID).SetProjection(w.t.stateFields()).SetBatchSize(inOneAnswer(len(ids))))
	if err != nil {
		return err
	}
	err = each(ctx, cursor, func(doc bson.Raw) error {
		there++
		if !w.t.isOpen(doc) {
			return nil
		}
		// It became so since: an operator requeued it, or its claim was taken back.
		id, err := idText(doc)
		if err == nil {
			m.Unseen = append(m.Unseen, w.of[id])
		}
		return err
	})
	if err != nil {
		return err
	}
	// Of the rows that are there, those that were updated are ours.
	left := len(w.of) - w.updated - w.deleted - len(m.Unseen)
	settled := min(max(0, there-w.updated-len(m.Unseen)), left)
	m.Settled += settled
	m.Absent = left - settled
	return nil
}

// isOpen: a mark would change the row.
func (t *Table) isOpen(doc bson.Raw) bool {
	switch t.l.schema.Preset {
	case event.Forze:
		state, _ := doc.Lookup(t.l.column(event.Status)).StringValueOK()
		return state == pending || state == processing
	case event.Basic:
		return isNull(new(doc.Lookup(t.l.column(event.PublishedAt))))
	default:
		return true
	}
}

// LookUp answers which of the ids are there and not pending any more.
func (t *Table) LookUp(ctx context.Context, ids []string) (map[string]bool, error) {
	done := map[string]bool{}
	if len(ids) == 0 || t.l.schema.Preset == event.Debezium {
		return done, nil // a row that is there is pending
	}
	err := t.with(ctx, "looking rows up in", func(ctx context.Context, c *driver.Collection) (err error) {
		filter := append(bson.D{in(fieldID, idValues(ids))}, is("$nor", bson.A{t.l.isPending()}))
		done, _, err = t.listed(ctx, c, filter, len(ids))
		return err
	})
	return done, err
}
