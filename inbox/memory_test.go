package inbox_test

import (
	"context"
	"errors"
	"maps"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/inbox"
)

// memory is a database of marks; its transaction is a set of marks that are not
// committed yet.
type memory struct {
	marks map[string]bool
	fail  error
}

type memoryTx struct {
	marks      map[string]bool
	rolledBack bool
}

func (m *memory) begin() *memoryTx { return &memoryTx{marks: map[string]bool{}} }

func (m *memory) commit(tx *memoryTx) {
	if !tx.rolledBack {
		maps.Copy(m.marks, tx.marks)
	}
}

func (m *memory) Mark(_ context.Context, tx *memoryTx, route, id string) (bool, error) {
	if m.fail != nil {
		return false, m.fail
	}
	k := route + "|" + id
	if m.marks[k] || tx.marks[k] {
		return false, nil
	}
	tx.marks[k] = true
	return true, nil
}

func (*memory) Rollback(_ context.Context, tx *memoryTx) { tx.rolledBack = true }

// deliver handles a record as a consumer does, and commits.
func (m *memory) deliver(ctx context.Context, in *inbox.Inbox, r inbox.Record, handler func(context.Context, inbox.Message) error) (inbox.Outcome, error) {
	ctx, msg, err := in.Receive(ctx, r)
	if err != nil {
		return inbox.Unsettled, err
	}
	tx := m.begin()
	outcome, err := inbox.Apply(ctx, in, m, tx, msg, func(ctx context.Context, _ *memoryTx, msg inbox.Message) error { return handler(ctx, msg) })
	m.commit(tx)
	return outcome, err
}

// clock notes what it is shown and refuses what lies beyond its limit.
type clock struct {
	seen  []hlc.Stamp
	limit hlc.Stamp
}

var errAhead = errors.New("too far ahead")

func (c *clock) Observe(s hlc.Stamp) (hlc.Stamp, error) {
	if c.limit != 0 && s > c.limit {
		return 0, errAhead
	}
	c.seen = append(c.seen, s)
	return s + 1, nil
}

// fromKafka turns a franz-go record into one of the inbox.
func fromKafka(r *kgo.Record) inbox.Record {
	out := inbox.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, inbox.Header{Key: h.Key, Value: h.Value})
	}
	return out
}

// kafka makes a record as walrelay publishes it; headers alternate name and value.
func kafka(offset int64, key string, headers ...string) inbox.Record {
	r := &kgo.Record{Topic: "orders", Partition: 2, Offset: offset, Key: []byte(key), Value: []byte(`{}`)}
	for i := 0; i < len(headers); i += 2 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: headers[i], Value: []byte(headers[i+1])})
	}
	return fromKafka(r)
}

const (
	someID  = "0198f3a0-0000-7000-8000-000000000001"
	otherID = "0198f3a0-0000-7000-8000-000000000002"
)

var someUUID, otherUUID = uuid.MustParse(someID), uuid.MustParse(otherID)
