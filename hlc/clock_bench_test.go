package hlc

import (
	"testing"
	"time"
)

func BenchmarkClockNow(b *testing.B) {
	c := New(time.Now, 0)
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
}

func BenchmarkClockNowContended(b *testing.B) {
	c := New(time.Now, 0)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Now()
		}
	})
}

func BenchmarkClockObserve(b *testing.B) {
	c := New(time.Now, 0)
	remote := c.Now()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Observe(remote); err != nil {
			b.Fatal(err)
		}
	}
}
