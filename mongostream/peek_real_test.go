package mongostream

import (
	"slices"
	"testing"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/test/mongoserver"
)

func TestALookFromThePositionOnTakesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, mongoserver.Shared(t))
	h.begin()
	reader := h.open()
	reader.eventually("it streams", func() bool { return reader.state() == event.StateStreaming })
	before := h.record()
	h.insert(1, 2)
	look := h.openKept(func(o *Options) { o.Peek = true })
	if got := ids(look.events(2)); !slices.Equal(got, numbers(1, 2)) {
		t.Fatal(got)
	}
	look.Confirm(look.pos)
	look.close()
	if after := h.record(); after.Data != before.Data || after.Holder != before.Holder || after.Epoch != before.Epoch {
		t.Errorf("the look made %+v of %+v", after, before)
	}
	if got := ids(reader.events(2)); !slices.Equal(got, numbers(1, 2)) {
		t.Fatal(got)
	}
}
