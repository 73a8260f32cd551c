package document

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/event"
)

// about600 is a document of the size that the project's figures are measured with.
func about600(t testing.TB) []byte {
	return raw(t, with("payload", bson.D{
		{Key: "order_id", Value: uuidText}, {Key: "cents", Value: int64(1999)}, {Key: "note", Value: strings.Repeat("n", 120)},
	}))
}

func TestReadingAllocatesNothing(t *testing.T) {
	doc, r := about600(t), New(Options{Schema: forze(t), Extra: []string{"attempts"}})
	buf, ev := make([]byte, 0, 4<<10), event.Event{CommitMicros: commitMicros, Extra: make([][]byte, 0, 1)}
	if n := testing.AllocsPerRun(100, func() { _, _ = r.Append(buf, doc, &ev) }); n != 0 || ev.Refused != nil {
		t.Errorf("%v allocations, refused %v", n, ev.Refused)
	}
}

// The figure is bytes of BSON read per second, on one core.
func BenchmarkAppend(b *testing.B) {
	doc, r := about600(b), New(Options{Schema: forze(b)})
	buf, ev := make([]byte, 0, 4<<10), event.Event{CommitMicros: commitMicros}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if _, out := r.Append(buf, doc, &ev); out != Publish {
			b.Fatal(out, ev.Refused)
		}
	}
}
