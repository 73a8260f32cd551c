package mongo

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
)

// stretch is a part of the claim index whose rows come in the order of the table, so that
// nothing has to be sorted to find the first of them.
type stretch struct {
	filter bson.D
	sort   bson.D // nil: as they come
	hint   any
	all    bool // whatever the limit is
}

// stretches are those that hold all rows which are pending and due. In the index the due time stands
// before the order of the table: with both kinds of due rows in one query ($or) the server
// would sort all of them. Those that have a due time come in its order; they are few as a rule. What is
// no date there is less than one, and so comes too: it is for the reader to refuse, not to be overlooked.
func (l *layout) stretches(req *outbox.Request) []stretch {
	if req.Only != nil {
		d := l.isPending()
		if l.states() {
			d = append(d, is("$expr", l.isDue()))
		}
		return []stretch{{filter: and(d, l.wanted(req)), hint: byID, all: true}}
	}
	// Sorted by all keys of the index, those that are the same for all rows too: so there is one way to
	// do it, and the server need not choose.
	keys := l.claimKeys()
	by := ascending(keys)
	if !l.states() {
		return []stretch{{filter: and(l.isPending(), l.wanted(req)), sort: by, hint: l.hint("", keys...)}}
	}
	hint, due := l.hint(pending, keys...), keys[1]
	rest := *req
	rest.Heads = nil
	more := l.wanted(&rest)
	var all []stretch
	for _, stamp := range l.stamps() {
		all = append(all, stretch{filter: and(append(append(l.isPending(), is(due, nil)), stamp...), more), sort: by, hint: hint})
	}
	all = append(all, stretch{filter: and(append(l.isPending(), is(due, op("$ne", nil)), is("$expr", l.isDue())), more), sort: by, hint: hint})
	return append(all, l.heads(req)...)
}

// heads is the stretch of rows of held keys whose turn it is, all of them that are due. The others end
// at a limit and begin with what has been due longest: a row that was given back later than those
// behind it in its key would be cut off, and they be claimed without it, in vain, again and again.
func (l *layout) heads(req *outbox.Request) []stretch {
	if len(req.Heads) == 0 || len(req.Held) == 0 {
		return nil
	}
	d := append(l.isPending(), in(fieldID, idValues(req.Heads)), is("$expr", l.isDue()), is("$or", l.keyIn(req.Held)))
	if len(req.Loose) > 0 { // those come without being asked for
		d = append(d, is(l.column(event.Route), op("$nin", texts(req.Loose))))
	}
	return []stretch{{filter: and(d, l.wanted(&outbox.Request{Shards: req.Shards, Except: req.Except})), hint: byID, all: true}}
}

// stamps cut a stretch in two where rows without a stamp shall come last: MongoDB sorts them first.
func (l *layout) stamps() []bson.D {
	if !l.hlcLast {
		return []bson.D{nil}
	}
	stamp := l.order()[0]
	return []bson.D{{is(stamp, op("$ne", nil))}, {is(stamp, nil)}}
}

func ascending(names []string) bson.D {
	by := make(bson.D, len(names))
	for i, name := range names {
		by[i] = is(name, 1)
	}
	return by
}

// fields is the projection to _id, the order and these fields.
func (l *layout) fields(more ...string) bson.D {
	d := bson.D{is(fieldID, 1)}
	seen := map[string]bool{fieldID: true, "": true}
	for _, name := range append(l.order(), more...) {
		if !seen[name] {
			d, seen[name] = append(d, is(name, 1)), true
		}
	}
	return d
}

// find gives the first rows of the stretches together, in the order of the table, at most limit. only is a
// projection that has the fields of the order; nil: whole rows.
func (l *layout) find(ctx context.Context, c *driver.Collection, parts []stretch, limit int, only bson.D) ([]found, error) {
	var rows []found
	for _, p := range parts {
		o := options.Find().SetBatchSize(inOneAnswer(limit)).SetAllowDiskUse(true)
		if !p.all {
			o.SetLimit(int64(limit))
		}
		if p.sort != nil {
			o.SetSort(p.sort)
		}
		if p.hint != nil {
			o.SetHint(p.hint)
		}
		if only != nil {
			o.SetProjection(only)
		}
		cursor, err := c.Find(ctx, p.filter, o)
		if err != nil {
			return nil, err
		}
		err = each(ctx, cursor, func(doc bson.Raw) error {
			rows = append(rows, l.placed(doc))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return l.sorted(rows, limit), nil
}

// mostAtOnce bounds what a server is asked for in one answer.
const mostAtOnce = 100_000

// each calls f for each document of the cursor, and closes it. Their bytes are the receiver's to
// keep: the driver reads every answer into new memory.
func each(ctx context.Context, cursor *driver.Cursor, f func(doc bson.Raw) error) error {
	defer cursor.Close(context.WithoutCancel(ctx))
	for cursor.Next(ctx) {
		if err := f(cursor.Current); err != nil {
			return err
		}
	}
	return cursor.Err()
}

// inOneAnswer is the batch size for n documents: with one more the server closes the cursor
// with its first answer; with just as many it would wait to be asked again.
func inOneAnswer(n int) int32 { return int32(min(n, mostAtOnce)) + 1 }
