package publish

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kfake"
)

func TestEveryRecordArrivesOnceInTheOrderOfItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(3, "a", "b"))
		r.open()
		const n = 3000
		for i := range uint64(n) {
			r.publish(record([]string{"a", "b"}[i%2], fmt.Sprintf("k%d", i%17), i), i)
		}
		r.wait("all decided", r.decided(n))
		got := append(r.consume("a"), r.consume("b")...)
		if len(got) != n {
			t.Errorf("%d records arrived, want %d", len(got), n)
		}
		inOrder(t, r.consume("a"))
		inOrder(t, r.consume("b"))
		r.close(n)
	})
}
