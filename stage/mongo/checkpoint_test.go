package mongo

// Battery H of the outbox contract: what a checkpoint keeps, under rollback and under
// writers that come in between. On MongoDB a writer that meets another one is sent
// back instead of waiting.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
)

func stamp(ms, logical int64) hlc.Stamp {
	s, err := hlc.Pack(ms, logical)
	if err != nil {
		panic(err)
	}
	return s
}

// advance raises a node's mark in a transaction of its own.
func (h *house) advance(c Checkpoint, s hlc.Stamp) {
	h.t.Helper()
	if err := h.transact(func(ctx context.Context) error { return c.Advance(ctx, h.db, s) }); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) load(want hlc.Stamp, wantFound bool) {
	h.t.Helper()
	got, found, err := Checkpoint{}.Load(context.Background(), h.db)
	if err != nil || got != want || found != wantFound {
		h.t.Errorf("loaded %s %t %v, want %s %t", got, found, err, want, wantFound)
	}
}

// clear makes the checkpoint what it was at first, with a mark or without.
func (h *house) clear(mark hlc.Stamp) {
	h.t.Helper()
	if _, err := h.db.Collection("hlc_checkpoint").DeleteMany(context.Background(), bson.D{}); err != nil {
		h.t.Fatal(err)
	}
	if mark != 0 {
		h.advance(one, mark)
	}
	h.wantsMark(mark)
}

// H1, H2, H3, H4.
func TestCheckpointKeepsTheGreatestMarkOfAllNodes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	h.load(0, false) // H1
	two := Checkpoint{NodeKey: "two", Stripes: 1}
	h.advance(one, stamp(1_700_000_000_000, 3)) // H2: both components
	h.load(stamp(1_700_000_000_000, 3), true)
	top := stamp(1_700_000_000_001, 9)
	// H3, after each write; the last one is a low one.
	for _, s := range []hlc.Stamp{top, stamp(1_700_000_000_001, 8), stamp(1_700_000_000_000, 65535), 1, 0} {
		h.advance(one, s)
		h.wantsMark(top)
		h.load(top, true)
	}
	// H4: the other node's, lower and then higher.
	h.advance(two, top-1)
	h.load(top, true)
	h.advance(two, top+1)
	h.load(top+1, true)
	h.wantsMarks(fmt.Sprintf("default=%d two=%d", top, top+1))
	h.advance(one, hlc.MaxClock)
	h.load(hlc.MaxClock, true)
	// What drivers of other languages write where it is small.
	h.put("hlc_checkpoint", bson.D{{Key: "_id", Value: "small"}, {Key: "hlc", Value: int32(7)}})
	h.load(hlc.MaxClock, true)
}

// H5, H6.
func TestCheckpointSharesTheFateOfTheTransaction(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for _, before := range []hlc.Stamp{0, 7} {
		h.clear(before)
		w := h.begin()
		if err := (Checkpoint{}).Advance(w.ctx, h.db, 9); err != nil {
			t.Fatal(err)
		}
		h.load(before, before != 0)
		w.rollback()
		h.load(before, before != 0)
	}
	h.advance(Checkpoint{}, 9)
	h.load(9, true)
}

// H7: a writer is held with its transaction open, the other mark lands from another
// session, in the middle of it; then the first one goes on. Whoever comes second is
// sent back and comes again; the greater mark stays. With a document there before and
// without: these are two paths of the server.
func TestWritersThatComeIntoEachOtherKeepTheGreaterMark(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	ctx := context.Background()
	advance := func(ctx context.Context, s hlc.Stamp) error { return one.Advance(ctx, h.db, s) }
	for name, c := range map[string]struct {
		held, second hlc.Stamp
		wrote        bool // the held one has written before the second comes
		rollback     bool // and then ends in vain
	}{
		"low has read, high comes":                {held: 50, second: 100},
		"high has read, low comes":                {held: 100, second: 50},
		"low has written, high comes":             {held: 50, second: 100, wrote: true},
		"high has written, low comes":             {held: 100, second: 50, wrote: true},
		"high has written in vain, low comes":     {held: 100, second: 50, wrote: true, rollback: true},
		"low has written in vain, the same comes": {held: 50, second: 50, wrote: true, rollback: true},
	} {
		for _, before := range []hlc.Stamp{0, 20, 70} {
			h.clear(before)
			held := h.begin()
			if _, err := h.db.Collection("hlc_checkpoint").CountDocuments(held.ctx, bson.D{}); err != nil { // its snapshot
				t.Fatal(err)
			}
			want := max(before, c.held, c.second)
			if c.wrote {
				if err := advance(held.ctx, c.held); err != nil {
					t.Fatal(err)
				}
				second := h.begin()
				err := advance(second.ctx, c.second)
				// A $max that changes nothing is no write, and conflicts with nothing.
				if meet := min(c.held, c.second) > before; sentBack(err) != meet || !meet && err != nil {
					t.Errorf("%s, %d before: the second one was sent back: %v, want %t", name, before, err, meet)
				}
				_ = second.s.AbortTransaction(ctx)
				h.wantsMark(before)
				if c.rollback {
					held.rollback()
					want = max(before, c.second)
				} else {
					held.commit()
				}
				h.advance(one, c.second)
			} else {
				h.advance(one, c.second)
				err := advance(held.ctx, c.held)
				if err != nil && !sentBack(err) {
					t.Errorf("%s, %d before: %v", name, before, err)
				}
				if err == nil {
					// It may only have been let through if it lowers nothing.
					held.commit()
				}
				h.advance(one, c.held)
			}
			h.load(want, true)
			h.wantsMark(want)
		}
	}
}

// Case 38 of mongo.md (SERVER-103347, SERVER-43309): 32 writers raise one mark in
// transactions, from nothing on. Each ends within a bound, and the greatest mark stays.
func TestThirtyTwoWritersOfOneMarkLoseNoMaximum(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	for name, key := range map[string]func(i int) Checkpoint{
		"one key":      func(int) Checkpoint { return one },
		"key per node": func(i int) Checkpoint { return Checkpoint{NodeKey: fmt.Sprint("node ", i), Stripes: 1} },
		"stripes":      func(int) Checkpoint { return Checkpoint{} },
	} {
		h.clear(0)
		var wg sync.WaitGroup
		var mu sync.Mutex
		attempts := 0
		top := hlc.Stamp(0)
		for i := range 32 {
			wg.Go(func() {
				for k := range 3 {
					s := hlc.Stamp(1 + (k*37+i*11)%500)
					err := h.transact(func(ctx context.Context) error {
						mu.Lock()
						attempts++
						mu.Unlock()
						return key(i).Advance(ctx, h.db, s)
					})
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					mu.Lock()
					top = max(top, s)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		h.load(top, true)
		t.Logf("%s: %d attempts for 96 transactions", name, attempts)
		if name == "key per node" && attempts != 96 {
			t.Errorf("nodes of their own met each other: %d attempts", attempts)
		}
	}
}

// A mark that is no integer is an error of configuration, never "no mark".
func TestWhatIsNoMarkIsAnErrorWithARemedyAndNotTheAbsenceOfOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	ctx := context.Background()
	mark := func(v any) bson.D { return bson.D{{Key: "_id", Value: "default"}, {Key: "hlc", Value: v}} }
	refused := func(want string, err error) {
		t.Helper()
		e, ok := errors.AsType[*event.Error](err)
		if !ok || e.Class != event.Halt || e.Fault != event.FaultPrecondition || !strings.Contains(e.Remedy, "NumberLong") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for want, doc := range map[string]bson.D{
		`"default" in hlc_checkpoint is of type string`: mark("7"),
		"is of type double":                             mark(7.5),
		"is of type null":                               mark(nil),
		"is of type UTC datetime":                       mark(bson.DateTime(7)),
		"is of type 128-bit decimal":                    mark(bson.NewDecimal128(0, 7)),
		"is of type embedded document":                  mark(bson.D{}),
		"is missing":                                    {{Key: "_id", Value: "default"}, {Key: "mark", Value: int64(7)}},
		"mark -7 in hlc_checkpoint is no stamp":         mark(int64(-7)),
		"is no stamp of a clock":                        mark(int64(hlc.MaxClock) + 1),
	} {
		h.clear(0)
		h.put("hlc_checkpoint", bson.D{{Key: "_id", Value: "b"}, {Key: "hlc", Value: int64(5)}})
		h.put("hlc_checkpoint", doc)
		_, err := Open(ctx, h.db, Options{})
		refused(want, err)
	}
	// The flush says it too, when the mark was replaced since, and writes nothing.
	for want, value := range map[string]any{"is of type string": "7", "is of type UTC datetime": bson.DateTime(1)} {
		h.clear(0)
		x := h.open(Options{Checkpoint: one})
		h.put("hlc_checkpoint", mark(value))
		w := h.begin()
		_, err := x.Flush(w.ctx, h.stage(x.Buffer(), some(1)...))
		refused(want, err)
		w.rollback()
	}
	h.count(0)
}

func TestServerThatCannotBeAskedIsNoMisfit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Open(ctx, h.db, Options{})
	if _, halt := errors.AsType[*event.Error](err); err == nil || halt || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the cancellation as it is", err)
	}
}

// A client that prefers secondaries must not be told of an older mark.
func TestMarkIsLoadedFromThePrimaryWhateverTheClientPrefers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{}, options.Client().SetReadPreference(readpref.Secondary()))
	h.db = h.db.Client().Database(h.db.Name(), options.Database().SetReadPreference(readpref.Secondary()))
	if err := h.transactPrimary(func(ctx context.Context) error { return Checkpoint{}.Advance(ctx, h.db, 7) }); err != nil {
		t.Fatal(err)
	}
	h.load(7, true) // a set of one node has no secondary to answer
}

// With one document transactions of a node that are open at the same time conflict;
// with stripes they do not, and what was sent back goes elsewhere.
func TestStripesKeepTransactionsFromConflicting(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	striped := h.open(Options{Checkpoint: Checkpoint{Stripes: 1 << 20}})
	first := h.begin()
	var top hlc.Stamp
	for range 2 {
		res, err := striped.Flush(first.ctx, h.stage(striped.Buffer(), some(1)...))
		if err != nil {
			t.Fatal(err)
		}
		top = res.Mark
	}
	h.wantsMark(h.flush(striped, some(1)...).Mark)
	first.commit()
	marks := map[int64]bool{}
	for _, d := range h.docs("hlc_checkpoint") {
		marks[d.Lookup("hlc").Int64()] = true
	}
	if len(marks) != 3 || !marks[int64(top)] {
		t.Errorf("marks %v", marks)
	}

	plain := h.open(Options{Checkpoint: one})
	first, second := h.begin(), h.begin()
	if _, err := plain.Flush(first.ctx, h.stage(plain.Buffer(), some(1)...)); err != nil {
		t.Fatal(err)
	}
	b := h.stage(plain.Buffer(), some(1)...)
	if _, err := plain.Flush(second.ctx, b); !sentBack(err) || b.Len() != 1 {
		t.Errorf("%v, %d left in the buffer, want a conflict and 1", err, b.Len())
	}
	first.commit()
}

// A transaction outlives the process that began it, until the server gives it up.
// Whoever comes after that process with its node key does not wait for that.
func TestProcessThatDiedBeforeItsCommitBlocksNoOther(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	dead := h.begin()
	x := h.open(Options{})
	_, err := x.Flush(dead.ctx, h.stage(x.Buffer(), some(1)...))
	if err != nil {
		t.Fatal(err)
	}
	heir := h.open(Options{Checkpoint: Checkpoint{Stripes: 2}}) // meets it half of the time
	for range 20 {
		if err := h.transact(func(ctx context.Context) error {
			_, err := heir.Flush(ctx, h.stage(heir.Buffer(), some(1)...))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	dead.rollback()
	h.count(20)
}
