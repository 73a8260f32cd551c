package reorder_test

import (
	"fmt"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/hlc"
	"github.com/walrelay/walrelay/reorder"
)

// Two sources into one topic: an event waits until both have passed it.
func ExampleBuffer() {
	b := reorder.New[string](2, 32<<20, 0)
	b.Attach(0)
	b.Attach(1)
	add := func(source int, millis int64, value string) {
		stamp, err := hlc.Pack(millis, 0)
		if err != nil {
			panic(err)
		}
		found := b.Add(reorder.Item[string]{
			Source: source, Stamp: stamp, Stamped: true, CommitMicros: millis * 1000, Bytes: int64(len(value)), Value: value,
		})
		fmt.Printf("%s is %s\n", value, found)
	}
	release := func(source int, millis int64) {
		stamp, err := hlc.Pack(millis, 0)
		if err != nil {
			panic(err)
		}
		b.Advance(source, stamp)
		for it, ok := b.Pop(); ok; it, ok = b.Pop() {
			fmt.Println("out:", it.Value)
		}
	}
	add(0, 2000, "paid")
	release(0, 5000) // source 1 might still bring something older
	add(1, 1000, "ordered")
	release(1, 3000)
	add(1, 1500, "packed")
	release(1, 4000)
	// Output:
	// paid is on time
	// ordered is on time
	// out: ordered
	// out: paid
	// packed is late
	// out: packed
}

// The watermark follows the oldest transaction that is open on the server, and only as
// far as the stream has come.
func ExampleProgress() {
	p := reorder.NewProgress(reorder.Bounds{Transaction: time.Minute, Staged: 100 * time.Millisecond, Skew: 250 * time.Millisecond})
	const second = 1_000_000
	p.Sample(event.Reading{NowMicros: 1000 * second, OldestMicros: 990 * second, At: event.AtLSN(500)})
	p.Delivered(event.AtLSN(400), 0)
	fmt.Println("before the stream is there:", p.Watermark())
	p.Delivered(event.AtLSN(500), 0)
	fmt.Println("oldest began at 990 s:     ", p.Watermark())
	p.Sample(event.Reading{NowMicros: 1001 * second, OldestMicros: 1001 * second, At: event.AtLSN(500)})
	fmt.Println("nothing is open any more:  ", p.Watermark())
	// Output:
	// before the stream is there: 000000000000000.00000
	// oldest began at 990 s:      000000000989650.00000
	// nothing is open any more:   000000001000650.00000
}
