package workload

import (
	"context"
	"time"
)

// Tickets hands out the right to begin a transaction, so many times (zero: until ctx ends), so often per second
// (zero: as they are taken); it is closed at the end. Room for spare ones lets it end when all who
// took them have failed.
func Tickets(ctx context.Context, transactions, rate, spare int) <-chan struct{} {
	tickets := make(chan struct{}, spare)
	go func() {
		defer close(tickets)
		var tick <-chan time.Time
		if rate > 0 {
			ticker := time.NewTicker(time.Second / time.Duration(rate))
			defer ticker.Stop()
			tick = ticker.C
		}
		for n := 0; transactions == 0 || n < transactions; n++ {
			if tick != nil {
				select {
				case <-tick:
				case <-ctx.Done():
					return
				}
			}
			select {
			case tickets <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return tickets
}
