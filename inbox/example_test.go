package inbox_test

import (
	"context"
	"fmt"
	"time"

	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/inbox"
)

// What stands in a map in place of a table; inbox/postgres has the real one.
type marks map[string]bool

func (m marks) Mark(_ context.Context, tx marks, route, id string) (bool, error) {
	fresh := !tx[route+"|"+id]
	tx[route+"|"+id] = true
	return fresh, nil
}

func (m marks) Rollback(context.Context, marks) {}

// A record that comes twice is handled once, and what the handler stamps sorts
// after the event that it reacts to, though this process's wall clock is behind.
func Example() {
	behind := func() time.Time { return time.UnixMilli(1_700_000_000_000 - 2000) }
	clock := hlc.New(behind, hlc.DefaultMaxDrift)
	in, err := inbox.New(inbox.Options{Route: "payments", Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	record := inbox.Record{
		Topic: "shop.orders", Partition: 2, Offset: 40, Key: []byte("order-1"), Value: []byte(`{"total": "19.99"}`),
		Headers: []inbox.Header{
			{Key: inbox.HeaderEventID, Value: []byte("0198f3a0-0000-7000-8000-000000000001")},
			{Key: inbox.HeaderStamp, Value: []byte("001700000000000.00003")},
		},
	}
	table := marks{}
	for range 2 {
		ctx, message, err := in.Receive(context.Background(), record)
		if err != nil {
			fmt.Println(err)
			return
		}
		outcome, err := inbox.Apply(ctx, in, table, table, message, func(_ context.Context, _ marks, m inbox.Message) error {
			fmt.Printf("pay for %s, because of %s, at %s\n", m.Key, m.Identity.Causation, clock.Now())
			return nil
		})
		fmt.Println(outcome, err)
	}
	fmt.Printf("%+v\n", in.Stats())
	// Output:
	// pay for order-1, because of 0198f3a0-0000-7000-8000-000000000001, at 001700000000000.00005
	// handled <nil>
	// duplicate <nil>
	// {Handled:1 Duplicates:1 Failed:0 StampsMerged:1 StampsMalformed:0 StampsRefused:0}
}

func ExampleInbox_MessageID() {
	in, err := inbox.New(inbox.Options{Route: "payments"})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := inbox.Record{Topic: "shop.orders", Partition: 2, Offset: 40, Key: []byte("order-1")}
	fmt.Println(in.MessageID(&r))
	r.Headers = []inbox.Header{{Key: inbox.HeaderEventID, Value: []byte("0198f3a0-0000-7000-8000-000000000001")}}
	fmt.Println(in.MessageID(&r))
	fmt.Println(in.MessageID(&inbox.Record{Key: []byte("order-1")}))
	// Output:
	// shop.orders:2:40 <nil>
	// 0198f3a0-0000-7000-8000-000000000001 <nil>
	//  nothing tells the record from others: no header forze_event_id, and no topic, partition and offset
}
