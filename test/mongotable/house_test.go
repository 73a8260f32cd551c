package mongotable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// soon bounds what ought to take well under a second, on a machine that runs many
// other things.
const soon = 60 * time.Second

// house is an outbox collection, the topic, and the application that writes documents.
type house struct {
	*rig.House
	k *kafkaserver.Server
	c *mongo.Collection
	// n is the number of the newest document; they are numbered in the order of commits.
	n int
	// key is that of a number.
	key func(n int) string
}

// newHouse takes a database of the shared replica set; the test sets what is special and calls Init.
func newHouse(t *testing.T, partitions int) *house {
	t.Helper()
	return houseOn(t, mongoserver.Shared(t), partitions)
}

func houseOn(t *testing.T, m *mongoserver.Server, partitions int) *house {
	t.Helper()
	k := kafkaserver.Shared(t)
	h := &house{House: rig.NewMongoHouse(t, m, k.Brokers(), k.Topic(t, partitions, nil)), k: k}
	h.c = h.Outbox(t)
	h.Source, h.Kafka = "after_publish: mark\nsweep_every: 500ms", "on_poison: park"
	h.key = func(n int) string { return fmt.Sprint("key ", n%20) }
	return h
}

// polled is an initialised house whose relays poll; options are those of the section poll.
func polled(t *testing.T, partitions int, options string) *house {
	t.Helper()
	h := newHouse(t, partitions)
	h.Stream = "capture: poll"
	h.Source = "after_publish: mark\npoll: {" + options + "}"
	h.Init(t)
	return h
}

// document is the event of a number: ids ascend as an application's do, so that the order of the
// collection is the order of writing. Event ids are not ids.
func document(n int, route, key string, pad int) bson.D {
	d := rig.Document(route, key, bson.D{{Key: "n", Value: n}, {Key: "pad", Value: strings.Repeat("x", pad)}})
	d[0].Value = fmt.Sprintf("00000000-0000-7000-8000-%012x", n)
	d[1].Value = eventID(n)
	return d
}

func eventID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

// transaction runs f in one.
func (h *house) transaction(t testing.TB, f func(ctx context.Context) error) {
	t.Helper()
	err := h.c.Database().Client().UseSession(context.Background(), func(ctx context.Context) error {
		_, err := mongo.SessionFromContext(ctx).WithTransaction(ctx, func(ctx context.Context) (any, error) { return nil, f(ctx) })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// put commits the events from to last of a key in one transaction.
func (h *house) put(t testing.TB, key string, from, last, pad int) {
	t.Helper()
	var all []any
	for n := from; n <= last; n++ {
		all = append(all, document(n, "orders", key, pad))
	}
	h.transaction(t, func(ctx context.Context) error {
		_, err := h.c.InsertMany(ctx, all)
		return err
	})
}

// putAndDelete is put for events that are gone when their transaction is over.
func (h *house) putAndDelete(t testing.TB, key string, from, last, pad int) {
	t.Helper()
	h.transaction(t, func(ctx context.Context) error {
		for n := from; n <= last; n++ {
			made, err := h.c.InsertOne(ctx, document(n, "orders", key, pad))
			if err == nil {
				_, err = h.c.DeleteOne(ctx, bson.D{{Key: "_id", Value: made.InsertedID}})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// fill commits the next events, so many per transaction; one makes no transaction.
func (h *house) fill(t testing.TB, events, each int) {
	t.Helper()
	for done := 0; done < events; done += each {
		var all []any
		for range min(each, events-done) {
			h.n++
			all = append(all, document(h.n, "orders", h.key(h.n), 0))
		}
		if len(all) == 1 {
			if _, err := h.c.InsertOne(context.Background(), all[0]); err != nil {
				t.Fatal(err)
			}
			continue
		}
		h.transaction(t, func(ctx context.Context) error {
			_, err := h.c.InsertMany(ctx, all)
			return err
		})
	}
}

// one commits the next event, of a route and key, and answers its number.
func (h *house) one(t testing.TB, route, key string) int {
	t.Helper()
	h.n++
	if _, err := h.c.InsertOne(context.Background(), document(h.n, route, key, 0)); err != nil {
		t.Fatal(err)
	}
	return h.n
}

// set updates documents as an operator does: with a pipeline, so that the server's clock is at hand.
func (h *house) set(t testing.TB, filter, fields bson.D) int {
	t.Helper()
	res, err := h.c.UpdateMany(context.Background(), filter, bson.A{bson.D{{Key: "$set", Value: fields}}})
	if err != nil {
		t.Fatal(err)
	}
	return int(res.MatchedCount)
}

// after is a moment by the server's clock.
func after(d time.Duration) bson.D {
	return bson.D{{Key: "$add", Value: bson.A{"$$NOW", d.Milliseconds()}}}
}

// field is a field of the documents, or of what is in it.
func field(name string, value any) bson.D { return bson.D{{Key: name, Value: value}} }

func numbered(n int) bson.D { return field("payload.n", n) }

// count is how many documents match.
func (h *house) count(t testing.TB, filter bson.D) int {
	t.Helper()
	n, err := h.c.CountDocuments(context.Background(), filter)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// states says how many documents are in each state, for instance "failed 1, published 9".
func (h *house) states(t testing.TB) string {
	t.Helper()
	cursor, err := h.c.Aggregate(context.Background(), bson.A{
		bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$status"}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
		bson.D{{Key: "$sort", Value: bson.D{{Key: "_id", Value: 1}}}},
	})
	var groups []struct {
		Status string `bson:"_id"`
		N      int    `bson:"n"`
	}
	if err == nil {
		err = cursor.All(context.Background(), &groups)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, g := range groups {
		all = append(all, fmt.Sprint(g.Status, " ", g.N))
	}
	return strings.Join(all, ", ")
}

// become waits until the documents are in these states.
func (h *house) become(t testing.TB, want string) {
	t.Helper()
	rig.Eventually(t, "documents "+want, soon, func() error {
		if got := h.states(t); got != want {
			return errors.New("they are " + got)
		}
		return nil
	})
}

// matches waits until so many documents match.
func (h *house) matches(t testing.TB, want int, filter bson.D) {
	t.Helper()
	rig.Eventually(t, fmt.Sprintf("%d documents like %v", want, filter), soon, func() error {
		if got := h.count(t, filter); got != want {
			return fmt.Errorf("there are %d; all are %s", got, h.states(t))
		}
		return nil
	})
}

// published waits until every document is.
func (h *house) published(t testing.TB) {
	t.Helper()
	rig.Eventually(t, "every document published", soon, func() error {
		if got := h.states(t); got != "" && (strings.Contains(got, ",") || !strings.HasPrefix(got, "published")) {
			return errors.New(got)
		}
		return nil
	})
}

// commits are the events numbered from 1 to n, for the oracle.
func (h *house) commits(n int) []oracle.Commit {
	list := make([]oracle.Commit, n)
	for i := range list {
		list[i] = oracle.Commit{EventID: eventID(i + 1), Route: "orders", Key: h.key(i + 1), Seq: int64(i + 1)}
	}
	return list
}

// judge holds what is in the topic against all that was filled in.
func (h *house) judge(t testing.TB, most int) oracle.Verdict {
	t.Helper()
	v := oracle.Require(t, h.commits(h.n), h.k.Consume(t, h.Topic), most)
	t.Logf("%d committed, %d records, %d duplicates of at most %d", v.Committed, v.Records, v.Duplicates, most)
	return v
}

// reads waits until the relay reads its source so: log, poll, catch_up.
func reads(t testing.TB, r *rig.Relay, gear string) {
	t.Helper()
	r.Eventually("gear "+gear, soon, func() error {
		if r.Metric("walrelay_source_gear", `state="`+gear+`"`) != 1 {
			return errors.New("it reads in another way")
		}
		return nil
	})
}

// stop ends relays that must end well.
func stop(t testing.TB, relays ...*rig.Relay) {
	t.Helper()
	for _, r := range relays {
		if code, took := r.Stop(); code != 0 {
			t.Errorf("the stop took %s and exited %d, want 0", took, code)
		}
	}
}

// variant is the same house with something else in its configuration.
func (h *house) variant(change func(*rig.House)) *rig.House {
	other := *h.House
	change(&other)
	return &other
}

// lingering has a relay gather records for so long before it sends any: what is
// claimed stays under way.
func (h *house) lingering(d time.Duration) *rig.House {
	return h.variant(func(o *rig.House) { o.Kafka += fmt.Sprintf("\nlinger: %s", d) })
}

// startAll starts relays and waits until each is ready and past the catch-up.
func startAll(t *testing.T, houses ...*rig.House) []*rig.Relay {
	t.Helper()
	relays := make([]*rig.Relay, len(houses))
	for i, h := range houses {
		relays[i] = h.Start(t)
	}
	for _, r := range relays {
		r.WaitReady(soon)
		r.Eventually("the end of the catch-up", soon, func() error {
			if r.Metric("walrelay_source_gear", `state="log"`)+r.Metric("walrelay_source_gear", `state="poll"`) != 1 {
				return errors.New("it catches up")
			}
			return nil
		})
	}
	return relays
}

// publishedBy is how many events Kafka has acknowledged to the relay.
func publishedBy(t testing.TB, r *rig.Relay) int64 {
	t.Helper()
	st, err := r.Status()
	if err != nil {
		t.Fatal(err)
	}
	return st.Sources[0].Events.Published
}

// numbers are the payloads' n of each key, in the order of arrival.
func numbers(records []*kgo.Record) map[string]string {
	byKey := map[string]string{}
	for _, rec := range records {
		var n int
		_, _ = fmt.Sscanf(string(rec.Value), `{"n":%d`, &n)
		byKey[string(rec.Key)] = strings.TrimSpace(fmt.Sprintf("%s %d", byKey[string(rec.Key)], n))
	}
	return byKey
}

// all are the payloads' n of the records, in their order.
func all(records []*kgo.Record) string {
	var list []string
	for _, rec := range records {
		for _, n := range numbers([]*kgo.Record{rec}) {
			list = append(list, n)
		}
	}
	return strings.Join(list, " ")
}

// command runs walrelay, wants that exit code, and all the texts in what it says.
func (h *house) command(t testing.TB, want int, texts []string, args ...string) string {
	t.Helper()
	out, code := h.Command(t, args...)
	if code != want || slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(out, s) }) {
		t.Errorf("walrelay %s exited %d, want %d and %q:\n%s", strings.Join(args, " "), code, want, texts, out)
	}
	return out
}

// during lets others work on.
func during(d time.Duration) { <-time.After(d) }

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

var errNone = errors.New("none")

const hour = time.Hour
