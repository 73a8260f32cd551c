package mongo

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/stage"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestFlushOutsideOfATransactionIsRefusedAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	committed, aborted := h.begin(), h.begin()
	committed.commit()
	aborted.rollback()
	idle, err := h.db.Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer idle.EndSession(context.Background())
	for name, ctx := range map[string]context.Context{
		"no session": t.Context(), "session without a transaction": mongo.NewSessionContext(t.Context(), idle), "committed": committed.ctx, "aborted": aborted.ctx,
	} {
		for _, o := range []Options{{}, {Form: DocumentsDeleted, Autocommit: true}} {
			x := h.open(o)
			b := h.stage(x.Buffer(), full())
			if _, err := x.Flush(ctx, b); !errors.Is(err, ErrNoTransaction) || !strings.Contains(err.Error(), "begin one") || b.Len() != 1 {
				t.Errorf("%s: %v, %d left in the buffer", name, err, b.Len())
			}
		}
		if err := (Checkpoint{}).Advance(ctx, h.db, 7); !errors.Is(err, ErrNoTransaction) {
			t.Errorf("%s: the checkpoint: %v", name, err)
		}
	}
	h.count(0)
	h.wantsMark(0)
}

// A client that goes to another database for each tenant hands out sessions of
// different clients: the stamps of one clock would be here and its mark there.
func TestSessionOfAnotherClientIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	other := &house{t, mongoserver.Shared(t).Client(t).Database(h.db.Name())} // the very same database
	w := other.begin()
	for _, o := range []Options{{}, {Autocommit: true}, {NoCheckpoint: true}} {
		x := h.open(o)
		b := h.stage(x.Buffer(), full())
		if _, err := x.Flush(w.ctx, b); !errors.Is(err, ErrOtherClient) || !strings.Contains(err.Error(), "an outbox for each client") || b.Len() != 1 {
			t.Errorf("%v, %d left in the buffer", err, b.Len())
		}
	}
	if err := (Checkpoint{}).Advance(w.ctx, h.db, 7); !errors.Is(err, ErrOtherClient) {
		t.Error(err)
	}
	if _, err := Open(w.ctx, h.db, Options{}); !errors.Is(err, ErrOtherClient) {
		t.Error(err)
	}
	if !w.s.TransactionRunning() {
		t.Error("the refusal cost the transaction")
	}
	h.count(0)
	h.wantsMark(0)
}

func TestAutocommitWritesTheMarkBeforeTheEvents(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var asked commands
	h := newHouse(t, Options{}, asked.monitor())
	x := h.open(Options{Autocommit: true})
	asked.take()
	res, err := x.Flush(ctx, h.stage(x.Buffer(), full(), some(1)[0]))
	if got := asked.take(); err != nil || res.Written != 2 || got != "findAndModify find insert" {
		t.Fatalf("%+v %v, in the commands %s", res, err, got)
	}
	h.wantsMark(res.Mark)
	first := res.Mark
	// Where the mark cannot be raised nothing is written.
	if err := h.db.RunCommand(ctx, bson.D{{Key: "collMod", Value: "hlc_checkpoint"}, {Key: "validator", Value: bson.D{{Key: "hlc", Value: 0}}}}).Err(); err != nil {
		t.Fatal(err)
	}
	b := h.stage(x.Buffer(), some(2)...)
	if _, err := x.Flush(ctx, b); err == nil || b.Len() != 2 {
		t.Errorf("%v, %d left in the buffer", err, b.Len())
	}
	h.count(2)
	h.wantsMark(first)
	// In a transaction it is written as ever.
	h.flush(h.open(Options{Autocommit: true, NoCheckpoint: true}), some(1)...)
	h.count(3)
}

// Outside of transactions nothing keeps an event from being written between the look
// and the insert, but the index; what comes after it is written, in order.
func TestAutocommitLeavesOutWhatAnotherWriterWasQuickerWith(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newHouse(t, Options{})
	x := h.open(Options{Autocommit: true})
	quick, slow := h.stage(x.Buffer(), full()), h.stage(x.Buffer(), append(append(some(2), full()), some(2)...)...)
	var res []stage.Staged
	if err := slow.Flush(func(events []stage.Staged) error {
		b, err := x.documents(events)
		if err != nil {
			return err
		}
		if _, err = x.leaveOut(ctx, b); err != nil {
			return err
		}
		if _, err := x.Flush(ctx, quick); err != nil {
			return err
		}
		res, err = x.insertAlone(ctx, b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	h.count(5)
	if len(res) != 1 || res[0].ID != id(1) {
		t.Errorf("ignored %v", res)
	}
}

func TestDocumentsThatAreDeletedAtOnceLeaveTheCollectionEmpty(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	h.flush(h.open(Options{}), full()) // one that stays
	stream, err := h.db.Collection("outbox").Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close(context.Background()) }()
	x := h.open(Options{Form: DocumentsDeleted})
	res := h.flush(x, full(), some(1)[0], some(1)[0])
	if res.Written != 2 || len(res.Ignored) != 1 || res.Ignored[0].ID != id(1) {
		t.Errorf("%+v, want 2 written and the one that is there ignored", res)
	}
	h.count(1)
	h.wantsMark(res.Mark)
	var seen []string
	for range 4 {
		if !stream.Next(t.Context()) {
			t.Fatal(stream.Err())
		}
		seen = append(seen, stream.Current.Lookup("operationType").StringValue())
	}
	if got := strings.Join(seen, " "); got != "insert insert delete delete" {
		t.Errorf("the change stream has %s", got)
	}
}

// Two transactions that write one event at the same time do not see each other. One is
// sent back, and its next attempt finds the event.
func TestOneEventOfTwoTransactionsAtATimeIsWrittenOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{NoCheckpoint: true})
	for _, later := range []string{"while the first is open", "after the first has committed"} {
		if _, err := h.db.Collection("outbox").DeleteMany(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		first, second := h.begin(), h.begin()
		if _, err := h.db.Collection("outbox").CountDocuments(second.ctx, bson.D{}); err != nil { // its snapshot
			t.Fatal(err)
		}
		if _, err := x.Flush(first.ctx, h.stage(x.Buffer(), full())); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(later, "after") {
			first.commit()
		}
		b := h.stage(x.Buffer(), full())
		if _, err := x.Flush(second.ctx, b); !sentBack(err) || b.Len() != 1 {
			t.Errorf("%s: %v, %d left in the buffer", later, err, b.Len())
		}
		if strings.HasPrefix(later, "while") {
			first.commit()
		}
		if res := h.flush(x, full()); len(res.Ignored) != 1 {
			t.Errorf("%s: the next attempt: %+v", later, res)
		}
		h.count(1)
	}
}

// Many at a time, of which a third is rolled back: documents and mark are those of the
// transactions that committed, and no stamp was issued twice.
func TestDocumentsAndMarkAreThoseOfTheTransactionsThatCommitted(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	x := h.open(Options{})
	var mu sync.Mutex
	committed, gaveUp := map[int64]bool{}, errors.New("gave up")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for k := range 15 {
				var staged []stage.Staged
				err := h.transact(func(ctx context.Context) error {
					b := x.Buffer()
					staged = nil
					for _, e := range some(1 + k%3) {
						s, err := b.Stage(ctx, e)
						if err != nil {
							return err
						}
						staged = append(staged, s)
					}
					if _, err := x.Flush(ctx, b); err != nil {
						return err
					}
					if (i+k)%3 == 0 {
						return gaveUp
					}
					return nil
				})
				if errors.Is(err, gaveUp) {
					continue
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, s := range staged {
					committed[int64(s.Stamp)] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	docs, top := h.docs("outbox"), int64(0)
	for _, d := range docs {
		s := d.Lookup("hlc").Int64()
		if !committed[s] {
			t.Errorf("stamp %d was not committed, or stands twice", s)
		}
		delete(committed, s)
		top = max(top, s)
	}
	if len(committed) != 0 {
		t.Errorf("%d events are missing", len(committed))
	}
	mark, _, err := Checkpoint{}.Load(t.Context(), h.db)
	if err != nil || int64(mark) != top {
		t.Errorf("mark %d, %v, want %d", mark, err, top)
	}
}

// The collections and indexes may be made again and again, and by whom comes first.
func TestInitMayBeRepeated(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Options{})
	if err := Init(t.Context(), h.db, Options{OmitHLC: true}); err != nil {
		t.Error(err)
	}
	specs, err := h.db.Collection("outbox").Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 6 {
		t.Errorf("%d indexes, %v, want five beside that of _id", len(specs), err)
	}
	for _, o := range []Options{{Collection: "a$b"}, {Collection: "system.x"}, {Form: 7}, {MaxEvents: -1}, {Checkpoint: Checkpoint{Stripes: -1}}, {Checkpoint: Checkpoint{NodeKey: "\x00"}}} {
		if Init(t.Context(), h.db, o) == nil {
			t.Errorf("%+v is accepted", o)
		}
		if _, err := Open(t.Context(), h.db, o); err == nil {
			t.Errorf("%+v is opened", o)
		}
	}
}

// Where nobody made collections beforehand, transactions make them; those that meet
// over it come again.
func TestFirstFlushesMakeTheCollectionsThatAreMissing(t *testing.T) {
	t.Parallel()
	s := mongoserver.Shared(t)
	h := &house{t, s.Client(t).Database(s.NewDatabase(t))}
	x := h.open(Options{Checkpoint: Checkpoint{Stripes: 4}})
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if err := h.transact(func(ctx context.Context) error {
				_, err := x.Flush(ctx, h.stage(x.Buffer(), some(2)...))
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	h.count(12)
	if mark, _, err := (Checkpoint{}).Load(t.Context(), h.db); err != nil || mark == 0 {
		t.Errorf("mark %s, %v", mark, err)
	}
}
