package hlc_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/walrelay/walrelay/hlc"
)

// A wall clock for the examples; programs use time.Now.
func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

func ExampleClock_Now() {
	clock := hlc.New(noon, hlc.DefaultMaxDrift)
	fmt.Println(clock.Now())
	fmt.Println(clock.Now())
	// Output:
	// 001780315200000.00000
	// 001780315200000.00001
}

// An effect has a greater stamp than its cause, though its process's wall clock is
// behind.
func ExampleClock_Observe() {
	fast := hlc.New(func() time.Time { return noon().Add(time.Second) }, 0)
	slow := hlc.New(noon, 0)
	cause := fast.Now()
	effect, err := slow.Observe(cause)
	fmt.Println(cause, effect, err)

	_, err = slow.Observe(cause + 1<<40)
	if drift, ok := errors.AsType[*hlc.DriftError](err); ok {
		fmt.Println("refused:", drift.Remote)
	}
	// Output:
	// 001780315201000.00000 001780315201000.00001 <nil>
	// refused: 001780331978216.00000
}

// A process goes on where the one before it stopped, though its wall clock was set
// back in between.
func ExampleClock_Resume() {
	clock := hlc.New(noon, 0)
	mark, err := hlc.Parse("001780315260000.00007") // what the checkpoint holds
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := clock.Resume(mark); err != nil {
		fmt.Println(err) // a damaged mark: do not start
		return
	}
	fmt.Println(clock.Now(), "ahead by", clock.Lead())
	// Output: 001780315260000.00008 ahead by 1m0s
}

func ExampleParse() {
	s, err := hlc.Parse("001700000000000.00003")
	fmt.Println(s.PhysicalMillis(), s.Logical(), uint64(s), err)
	// Output: 1700000000000 3 111411200000000003 <nil>
}
